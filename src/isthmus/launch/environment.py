"""The environment of MPI programs: variables for a launch on a small machine.

The user's own values stay. Only Open MPI gets Open MPI's variables, since there are
many.
"""

from __future__ import annotations

from collections.abc import Mapping

# Ranks share few cores, so none of them may start threads of its own.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
OPEN_MPI_AS_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
OPEN_MPI_ON_ONE_HOST = OPEN_MPI_AS_ROOT | {
    # With more ranks than cores.
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",  # before Open MPI 5
    # The transports inside a machine; naming them saves a second of probing. Vader is
    # shared memory: the only name before Open MPI 5, and known to Open MPI 5 too.
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,vader",
}
OPEN_MPI_BETWEEN_HOSTS = OPEN_MPI_AS_ROOT | {
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    # Otherwise each host would spin on all cores, which are shared with all hosts.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_pml": "ob1",
    # Between hosts tcp; vader, the older name of sm, is between processes of one host.
    "OMPI_MCA_btl": "self,vader,tcp",
    # Only the first host has the script in place of ssh, so it starts all daemons.
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
}
#: variables that name the network which Open MPI uses
OPEN_MPI_NETWORKS = (
    "OMPI_MCA_btl_tcp_if_include",
    "OMPI_MCA_oob_tcp_if_include",
    "PRTE_MCA_prte_if_include",
)
MPICH_BETWEEN_HOSTS = {
    "FI_PROVIDER": "tcp",
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    # A build with UCX would take all hosts for one machine with one shared memory.
    "UCX_TLS": "tcp,self",
    # An empty name keeps Hydra from leaving a file in /tmp when a job is ended.
    "HWLOC_XMLFILE": "",
}
#: variables of Open MPI before 5 and since, for the command in place of ssh
REMOTE_SHELLS = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")
#: variables of both for the folder of the daemons' files
DAEMON_FOLDERS = ("OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base")


def on_one_host(open_mpi: bool, environ: Mapping[str, str]) -> dict[str, str]:
    """The user's environment, completed for ranks on a single host."""
    defaults = ONE_THREAD | (OPEN_MPI_ON_ONE_HOST if open_mpi else {})
    return defaults | dict(environ)


def between_hosts(
    open_mpi: bool, environ: Mapping[str, str], network: str
) -> dict[str, str]:
    """The user's environment, completed for ranks on hosts of a TCP network."""
    defaults = ONE_THREAD | MPICH_BETWEEN_HOSTS
    if open_mpi:
        networks = dict.fromkeys(OPEN_MPI_NETWORKS, network)
        defaults = ONE_THREAD | OPEN_MPI_BETWEEN_HOSTS | networks
    return defaults | dict(environ)


def started_by(remote_shell: str, folder: str) -> dict[str, str]:
    """The variables by which Open MPI starts daemons with a command of ours."""
    shells: dict[str, str] = dict.fromkeys(REMOTE_SHELLS, remote_shell)
    return shells | dict.fromkeys(DAEMON_FOLDERS, folder)
