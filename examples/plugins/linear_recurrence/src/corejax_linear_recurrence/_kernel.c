/* The recurrence h[t] = a[t] * h[t - 1] + x[t] over rows of contiguous arrays: what NumPy has no function for. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Rows of real numbers. `step` is 1, or -1 to go from the last entry to the first. */
#define DEFINE_REAL(NAME, T)                                                                          \
    static void NAME(const T *a, const T *x, T *h, Py_ssize_t rows, Py_ssize_t length, int reverse)   \
    {                                                                                                 \
        const Py_ssize_t step = reverse ? -1 : 1;                                                     \
        for (Py_ssize_t row = 0; row < rows; row++) {                                                 \
            Py_ssize_t i = row * length + (reverse ? length - 1 : 0);                                 \
            T last = h[i] = x[i];                                                                     \
            for (Py_ssize_t t = 1; t < length; t++) {                                                 \
                i += step;                                                                            \
                last = h[i] = a[i] * last + x[i];                                                     \
            }                                                                                         \
        }                                                                                             \
    }

/* Rows of complex numbers, as pairs: not every C compiler knows them. */
#define DEFINE_COMPLEX(NAME, T)                                                                       \
    static void NAME(const T *a, const T *x, T *h, Py_ssize_t rows, Py_ssize_t length, int reverse)   \
    {                                                                                                 \
        const Py_ssize_t step = reverse ? -2 : 2;                                                     \
        for (Py_ssize_t row = 0; row < rows; row++) {                                                 \
            Py_ssize_t i = 2 * (row * length + (reverse ? length - 1 : 0));                           \
            T re = h[i] = x[i];                                                                       \
            T im = h[i + 1] = x[i + 1];                                                               \
            for (Py_ssize_t t = 1; t < length; t++) {                                                 \
                i += step;                                                                            \
                const T next = a[i] * re - a[i + 1] * im + x[i];                                      \
                im = h[i + 1] = a[i] * im + a[i + 1] * re + x[i + 1];                                 \
                re = h[i] = next;                                                                     \
            }                                                                                         \
        }                                                                                             \
    }

DEFINE_REAL(run_f, float)
DEFINE_REAL(run_d, double)
DEFINE_COMPLEX(run_F, float)
DEFINE_COMPLEX(run_D, double)

PyDoc_STRVAR(run_doc,
             "run(a, x, h, kind, length, reverse)\n--\n\n"
             "Write the recurrence of a and x into h, all contiguous, rows of `length` numbers of one kind:\n"
             "'f', 'd', 'F' or 'D', NumPy's characters for float32, float64, complex64 and complex128.");

static PyObject *run(PyObject *module, PyObject *args)
{
    Py_buffer a, x, h;
    int kind, reverse;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "y*y*w*Cnp", &a, &x, &h, &kind, &length, &reverse))
        return NULL;
    const Py_ssize_t size = kind == 'f' ? 4 : kind == 'd' || kind == 'F' ? 8 : kind == 'D' ? 16 : 0;
    const int fits = size && length > 0 && a.len == x.len && a.len == h.len && a.len % (size * length) == 0;
    if (fits) {
        const Py_ssize_t rows = a.len / (size * length);
        Py_BEGIN_ALLOW_THREADS
        switch (kind) {
        case 'f': run_f(a.buf, x.buf, h.buf, rows, length, reverse); break;
        case 'd': run_d(a.buf, x.buf, h.buf, rows, length, reverse); break;
        case 'F': run_F(a.buf, x.buf, h.buf, rows, length, reverse); break;
        default: run_D(a.buf, x.buf, h.buf, rows, length, reverse);
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&a);
    PyBuffer_Release(&x);
    PyBuffer_Release(&h);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "run: a, x and h are rows of `length` numbers of one kind, f d F or D");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"run", run, METH_VARARGS, run_doc}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernel", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&definition); }
