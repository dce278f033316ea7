from corejax.messages.homes import install_advice as install_advice
from corejax.plugins import exported as exported
from corejax.plugins import exported_names as exported_names
from corejax.plugins import manifest as manifest
from corejax.plugins import missing_name as missing_name
from corejax.plugins import plugin_records as plugin_records
from corejax.plugins._isolation import isolated_plugins as isolated_plugins
from corejax.plugins.hookspecs import API_VERSION as API_VERSION
