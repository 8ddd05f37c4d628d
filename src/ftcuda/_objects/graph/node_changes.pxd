from core.graph.graph_definition cimport GraphDefinition
from core.graph.graph_node cimport Kept
from core.graph.node_change cimport NodeChange
from libcpp cimport bool
from libcpp.memory cimport unique_ptr


cdef unique_ptr[NodeChange] kernel_change(object config, object kernel, object args, const Kept* expected) except *
cdef unique_ptr[NodeChange] fill_change(object dst, object value, object width, object height, object pitch,
                                        object dst_owner) except *
cdef unique_ptr[NodeChange] copy_change(object dst, object src, object size, object dst_owner,
                                        object src_owner) except *
cdef unique_ptr[NodeChange] event_change(int type, object event) except *
cdef unique_ptr[NodeChange] host_change(object fn, object user_data) except *
cdef unique_ptr[NodeChange] allocation_change(object size, object memory_type, object peer_access) except *
cdef unique_ptr[NodeChange] free_change(object dptr) except *
cdef unique_ptr[NodeChange] child_change(GraphDefinition& child, bool lasts) except *
