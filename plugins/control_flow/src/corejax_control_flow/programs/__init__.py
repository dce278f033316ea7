"""From users' functions to programs, and from programs to programs: what every other package here is built on."""
