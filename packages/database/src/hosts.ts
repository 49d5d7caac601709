/**
 * Connects to the primary among several hosts. The driver accepts one host, so the socket of each connection searches for the primary
 * before it connects. A connection to a host that is not the primary is never used.
 */

import { Socket } from 'node:net'

import pg from 'pg'

/** The timeout of the query to one host. All hosts are queried at the same time. */
const SEARCH_MS = 1_000
const DEFAULT_PORT = 5432
const WRITABLE = new Set(['read-write', 'primary'])

/** Matches the parts of an address: the scheme with the credentials, the list of hosts, and the path with the query. */
const ADDRESS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s

/** The fields of the driver's configuration that determine the server. */
interface ConnectionTarget {
  readonly connectionString: string
  readonly stream?: () => Socket
}

/** Returns one address for each host of `postgres://user:password@a:5432,b:5432/database`. */
export function addressesOf(url: string): string[] {
  const [, head = '', hosts = '', tail = ''] = ADDRESS.exec(url) ?? []
  return head === '' ? [url] : hosts.split(',').map((host) => `${head}${host}${tail}`)
}

/**
 * Returns the configuration for connections to `url`. With several hosts, or with `target_session_attrs=read-write`, each connection
 * leads to the primary. Otherwise the only host is used without a search.
 */
export function connectionTo(url: string): ConnectionTarget {
  const addresses = addressesOf(url)
  const [first = url] = addresses
  const attributes = URL.canParse(first) ? new URL(first).searchParams.get('target_session_attrs') : null
  if (addresses.length === 1 && !WRITABLE.has(attributes ?? '')) return { connectionString: first }
  const finder = new PrimaryFinder(addresses)
  return { connectionString: first, stream: () => socketTo(finder) }
}

/** Reports that no host of an address responds as a primary. */
class NoPrimary extends Error {
  /** The SQLSTATE of a connection that could not be established. */
  readonly code = '08001'

  constructor(reasons: readonly string[]) {
    super(`No host of the database address is a primary: ${reasons.join('; ')}`)
  }
}

interface Host {
  readonly host: string
  readonly port: number
}

class PrimaryFinder {
  readonly #addresses: readonly string[]
  /** The search in progress, which several connections share, or null. */
  #search: Promise<Host> | null = null

  constructor(addresses: readonly string[]) {
    this.#addresses = addresses
  }

  /** Resolves to the first host that responds as a primary. Rejects with NoPrimary. */
  find(): Promise<Host> {
    this.#search ??= this.#queryAll().finally(() => (this.#search = null))
    return this.#search
  }

  async #queryAll(): Promise<Host> {
    try {
      return await Promise.any(this.#addresses.map(queryHost))
    } catch (error) {
      const errors: unknown[] = error instanceof AggregateError ? error.errors : [error]
      throw new NoPrimary(errors.map((one) => (one instanceof Error ? one.message : String(one))))
    }
  }
}

/** Resolves when the host is a primary. Rejects otherwise, with the host in the message. */
async function queryHost(address: string): Promise<Host> {
  const limits = { connectionTimeoutMillis: SEARCH_MS, query_timeout: SEARCH_MS, application_name: 'keyward search' }
  const client = new pg.Client({ connectionString: address, ...limits })
  client.on('error', () => undefined)
  const { host, port } = client
  try {
    await client.connect()
    const { rows } = await client.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
    if (rows[0]?.standby !== false) throw new Error('is a standby')
    return { host, port: port || DEFAULT_PORT }
  } catch (error) {
    throw new Error(`${host}:${port} ${error instanceof Error ? error.message : 'failed'}`, { cause: error })
  } finally {
    // This call is not awaited, because a server that no longer responds would delay it.
    client.end().catch(() => undefined)
  }
}

/** Returns a socket whose `connect` ignores its arguments and connects to the primary. */
function socketTo(finder: PrimaryFinder): Socket {
  const socket = new Socket()
  const connect = socket.connect.bind(socket)
  const connectToPrimary = async (): Promise<void> => {
    try {
      const { host, port } = await finder.find()
      if (!socket.destroyed) connect(port, host)
    } catch (error) {
      socket.destroy(error instanceof Error ? error : new NoPrimary([]))
    }
  }
  socket.connect = () => {
    void connectToPrimary()
    return socket
  }
  return socket
}
