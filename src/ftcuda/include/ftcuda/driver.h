/* The CUDA driver for extensions that do not link it.
 *
 *     const ftcuda_driver_v1* driver = ftcuda_import_driver();  // attached to the interpreter; NULL: an exception
 *     if (driver == NULL) return NULL;
 *     PFN_cuTensorMapEncodeTiled_v12000 encode;
 *     int status = driver->find("cuTensorMapEncodeTiled", 12000, (void**)&encode);
 *     if (status != 0) ... driver->status_name(status) ...
 *
 * ftcuda.get_include() is the folder to give to the compiler. Everything but ftcuda_import_driver() may be called by
 * any thread, attached to the interpreter or not.
 */
#ifndef FTCUDA_DRIVER_H
#define FTCUDA_DRIVER_H

#ifdef __cplusplus
extern "C" {
#endif

#define FTCUDA_DRIVER_CAPSULE "ftcuda.adapter.driver_v1"

/* Constant, and never freed. Later versions of ftcuda only add fields at the end; `size` says how many there are. */
typedef struct ftcuda_driver_v1 {
    unsigned version; /* 1 */
    unsigned size;    /* bytes of this structure */

    /* Loads the driver that FTCUDA_DRIVER names, unless it is loaded. 0, or -1 with a Python exception set: the thread
     * must be attached to the interpreter. */
    int (*load)(void);

    /* The driver's function `name` as declared in CUDA `version` (1000 * major + 10 * minor, as in cudaTypedefs.h:
     * 12000 for PFN_..._v12000). 0 (CUDA_SUCCESS); 801 (CUDA_ERROR_NOT_SUPPORTED) and NULL where this driver has no
     * such function; 3 (CUDA_ERROR_NOT_INITIALIZED) before load(); 1 (CUDA_ERROR_INVALID_VALUE) for a NULL argument. */
    int (*find)(const char* name, int version, void** function);

    /* The driver's name of a status, and its sentence about it. Never NULL. */
    const char* (*status_name)(int status);
    const char* (*status_text)(int status);

    /* What the driver says it is: 1000 * major + 10 * minor. 0 before load(). */
    int (*driver_version)(void);
} ftcuda_driver_v1;

#ifdef PyObject_HEAD /* Python.h was included before */
/* The table with the driver loaded; NULL with an exception set if there is none. */
static inline const ftcuda_driver_v1* ftcuda_import_driver(void) {
    const ftcuda_driver_v1* driver = (const ftcuda_driver_v1*)PyCapsule_Import(FTCUDA_DRIVER_CAPSULE, 0);
    return driver != NULL && driver->load() == 0 ? driver : NULL;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
