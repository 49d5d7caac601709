/** Runs patronictl in the container of a node to control the Patroni cluster of an installation. */

import { setTimeout as sleep } from 'node:timers/promises'

import { z } from 'zod'

import type { Installation } from './installation.ts'

export const NODES = ['postgres-1', 'postgres-2', 'postgres-3'] as const
const POLL_MS = 1_000
const REPLACED_MS = 300_000

const membersSchema = z.array(z.object({ Member: z.string(), Role: z.string(), State: z.string() }))

export class Nodes {
  readonly #installation: Installation

  constructor(installation: Installation) {
    this.#installation = installation
  }

  /** Runs patronictl on the first node on which it succeeds. Resolves to the output of patronictl. */
  async patronictl(...args: readonly string[]): Promise<string> {
    let reason: unknown
    for (const node of NODES)
      try {
        return await this.#installation.composeInBackground(['exec', '--no-TTY', node, 'patronictl', ...args])
      } catch (error) {
        reason = error
      }
    throw new Error('No node can run patronictl.', { cause: reason })
  }

  /** Resolves to the roles and states of all members, such as `Leader running`, in alphabetical order. */
  async states(): Promise<string[]> {
    return (await this.#members()).map(({ Role, State }) => `${Role} ${State}`).toSorted()
  }

  /** Resolves to the node that holds the lock of the leader. Rejects if there is none. */
  async leader(): Promise<string> {
    const leader = (await this.#members()).find(({ Role }) => Role === 'Leader')
    if (leader === undefined) throw new Error('No node is the leader.')
    return leader.Member
  }

  /** Resolves when a node other than `former` is the leader. */
  async untilReplaced(former: string): Promise<void> {
    const endMs = performance.now() + REPLACED_MS
    while ((await this.leader().catch(() => former)) === former) {
      if (performance.now() > endMs) throw new Error(`${former} was not replaced.`)
      await sleep(POLL_MS)
    }
  }

  /** Runs a query as superuser on a node, and returns the rows as lines. */
  query(node: string, sql: string): string {
    const address = 'host=127.0.0.1 user=postgres password=$PATRONI_SUPERUSER_PASSWORD'
    return this.#installation.shell(node, `psql --no-align --tuples-only "${address}" --command "${sql}"`)
  }

  async #members(): Promise<z.infer<typeof membersSchema>> {
    return membersSchema.parse(JSON.parse(await this.patronictl('list', '--format', 'json')))
  }
}
