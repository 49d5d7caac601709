/** A large change that is read apart: its pages are applied as they arrive, while the follower follows the other organizations. */

import type { Id, LargeChange } from '@keyward/database'

import { convertChanges, type SkippedRow } from './convert.ts'
import type { FeedConnection, FeedTarget } from './follower-interfaces.ts'

export interface ApartOptions {
  /** The snapshot up to which the changes of the organizations were applied before. */
  readonly since: string
  readonly organizations: readonly Id[]
  readonly report: (skipped: readonly SkippedRow[]) => void
  readonly onEnd: () => void
}

export class Apart {
  readonly since: string
  readonly organizations: readonly Id[]
  /** Null while it goes on. `snapshot`: that of all pages. */
  outcome: { snapshot: string } | { error: unknown } | null = null
  readonly #change: LargeChange

  constructor(connection: FeedConnection, target: FeedTarget, { since, organizations, report, onEnd }: ApartOptions) {
    this.since = since
    this.organizations = organizations
    this.#change = connection.readLarge(since, organizations, (page) => {
      const { changes, signingKeys, unreadable } = convertChanges(page.changes)
      const skipped = target.applyPage(changes, signingKeys, page)
      // A later page writes what `restrict` writes a part of, and reports it.
      report(page.step === 'restrict' ? [] : [...unreadable, ...skipped])
    })
    const settle = (outcome: Apart['outcome']): void => {
      this.outcome = outcome
      onEnd()
    }
    this.#change.done.then(
      (snapshot) => settle({ snapshot }),
      (error: unknown) => settle({ error }),
    )
  }

  /** Resolves when no further page is applied. */
  async stop(): Promise<void> {
    this.#change.close()
    await this.#change.done.catch(() => undefined)
  }
}
