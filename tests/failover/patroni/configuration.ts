/** Writes the configuration files of the programs of a Patroni cluster. All of them listen on the loopback address. */

/** The ports of one node. */
export interface NodePorts {
  /** Patroni's API. */
  readonly api: number
  readonly postgres: number
  /** The port at which the other nodes reach this Postgres. It may be the port of a proxy. */
  readonly replication: number
}

export interface Member {
  readonly name: string
  readonly folder: string
  readonly ports: NodePorts
}

/** `synchronous`: a commit waits for a standby, even while no standby exists. `asynchronous`: no commit waits. */
export type Mode = 'synchronous' | 'asynchronous'

export interface PatroniSettings {
  readonly mode: Mode
  readonly password: string
  readonly etcd: readonly number[]
  /** The folder of the programs of Postgres. */
  readonly binaries: string
  /** Whether commits survive a crash of the host. Tests crash only programs, so they set false. */
  readonly fsync: boolean
}

/**
 * The seconds after which a leader without contact with etcd loses its lock. A failed primary is replaced after `TTL_SECONDS`
 * and at most two loops. Patroni requires that one loop and two retries take no longer than the lock lasts.
 */
const TTL_SECONDS = 20
const LOOP_SECONDS = 5
const RETRY_SECONDS = 7
const HOST = '127.0.0.1'

/** Patroni applies these settings once, when it creates the cluster. Afterwards they are stored in etcd. */
function clusterSettings({ mode, fsync }: PatroniSettings): object {
  const isSynchronous = mode === 'synchronous'
  return {
    ttl: TTL_SECONDS,
    loop_wait: LOOP_SECONDS,
    retry_timeout: RETRY_SECONDS,
    maximum_lag_on_failover: 1_048_576,
    synchronous_mode: isSynchronous,
    synchronous_mode_strict: isSynchronous,
    postgresql: {
      use_pg_rewind: true,
      parameters: {
        max_connections: 100,
        shared_buffers: '32MB',
        wal_log_hints: 'on',
        fsync: fsync ? 'on' : 'off',
        // A failing statement can contain values of a request, which must not be logged.
        log_error_verbosity: 'terse',
        log_min_error_statement: 'panic',
        log_parameter_max_length_on_error: 0,
      },
    },
  }
}

/** Returns the configuration of a node, as JSON, which is valid YAML. */
export function patroniConfiguration({ name, folder, ports }: Member, settings: PatroniSettings): string {
  const { password, etcd, binaries } = settings
  const user = (username: string): object => ({ username, password })
  return JSON.stringify({
    scope: 'keyward',
    name,
    restapi: { listen: `${HOST}:${ports.api}`, connect_address: `${HOST}:${ports.api}` },
    etcd3: { hosts: etcd.map((port) => `${HOST}:${port}`) },
    bootstrap: {
      dcs: clusterSettings(settings),
      initdb: [{ encoding: 'UTF8' }, 'data-checksums', { locale: 'C.UTF-8' }],
    },
    postgresql: {
      listen: `${HOST}:${ports.postgres}`,
      connect_address: `${HOST}:${ports.replication}`,
      data_dir: `${folder}/data`,
      bin_dir: binaries,
      pgpass: `${folder}/pgpass`,
      authentication: { superuser: user('postgres'), replication: user('replicator'), rewind: user('rewinder') },
      parameters: { unix_socket_directories: folder },
      pg_hba: [`host replication replicator ${HOST}/32 scram-sha-256`, `host all all ${HOST}/32 scram-sha-256`],
    },
  })
}

/** Returns the configuration of a haproxy that forwards connections to the primary, and closes those to a former primary. */
export function haproxyConfiguration(port: number, members: readonly Member[]): string {
  const servers = members.map(({ name, ports }) => `  server ${name} ${HOST}:${ports.postgres} check port ${ports.api}`)
  return `global
  maxconn 400
defaults
  mode tcp
  timeout client 30m
  timeout server 30m
  timeout connect 2s
  timeout check 2s
listen primary
  bind ${HOST}:${port}
  option httpchk GET /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`
}
