/* Asks libfabric, with no MPI, whether a message is there: a peek, of which none was sent.
 *
 *     gcc shm_peek.c -o shm_peek -lfabric && ./shm_peek shm; ./shm_peek 'tcp;ofi_rxm'
 *
 * Right, by fi_tagged(3): "no message". Wrong: no answer within 5 s (the provider has taken it for a receive). */
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void must(const char *what, long status)
{
    if (status) {
        printf("%s: %s\n", what, fi_strerror((int) -status));
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    struct fi_context context;
    struct fi_msg_tagged peek = {.addr = FI_ADDR_UNSPEC, .context = &context, .ignore = ~0ULL};
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_ep *ep;
    struct fid_cq *cq;
    struct fid_av *av;
    long status;

    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup(argc > 1 ? argv[1] : "shm");
    must("fi_getinfo", fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info));
    must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
    must("fi_domain", fi_domain(fabric, info, &domain, NULL));
    must("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq, NULL));
    must("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
    must("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
    must("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV));
    must("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
    must("fi_enable", fi_enable(ep));
    status = fi_trecvmsg(ep, &peek, FI_PEEK | FI_COMPLETION);
    for (time_t end = time(NULL) + 5; status != -FI_ENOMSG && time(NULL) < end;) {
        status = fi_cq_read(cq, &entry, 1);
        if (status == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1)
            status = -error.err;
    }
    printf("%s, libfabric %d.%d: %s\n", info->fabric_attr->prov_name, FI_MAJOR(fi_version()), FI_MINOR(fi_version()),
           status == -FI_ENOMSG ? "no message" : "no answer within 5 s");
    return status != -FI_ENOMSG;
}
