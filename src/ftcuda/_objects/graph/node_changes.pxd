from core.graph.graph_definition cimport GraphDefinition
from core.graph.node_change cimport NodeChange
from libcpp.memory cimport unique_ptr


cdef unique_ptr[NodeChange] kernel_change(object config, object kernel, object args) except *
cdef unique_ptr[NodeChange] fill_change(object dst, object value, object width, object height, object pitch,
                                        object dst_owner) except *
cdef unique_ptr[NodeChange] copy_change(object dst, object src, object size, object dst_owner,
                                        object src_owner) except *
cdef unique_ptr[NodeChange] event_change(int type, object event) except *
cdef unique_ptr[NodeChange] host_change(object fn, object user_data) except *
cdef unique_ptr[NodeChange] child_change(GraphDefinition& child) except *
