#pragma once

#include <infiniband/verbs.h>

#include "objects/attributes/context.h"

namespace gdrperf::softnic {

ibv_td* make_td(ibv_context* context, const ibv_td_init_attr& attr);
int destroy_td(ibv_td* td);
ibv_pd* make_parent_domain(ibv_context* context, const ibv_parent_domain_init_attr& attr);
/// Of ibv_dealloc_pd, when the domain is a parent domain.
void destroy_parent_domain(Pd& parent);

}  // namespace gdrperf::softnic
