/**
 * Reads the changes of organizations that have too many changes for one read, and applies them page by page. Meanwhile the follower
 * reads the changes of the other organizations.
 */

import type { Id, LargeChange } from '@keyward/database'

import { convertChanges, type SkippedRow } from './convert.ts'
import type { FeedConnection, FeedTarget } from './follower-interfaces.ts'

interface LargeReadOptions {
  /** The snapshot up to which the changes of `organizations` have already been applied. */
  readonly since: string
  readonly organizations: readonly Id[]
  readonly report: (skipped: readonly SkippedRow[]) => void
  readonly onEnd: () => void
}

export class LargeRead {
  readonly since: string
  readonly organizations: readonly Id[]
  /** The outcome, or null while pages are being read. All pages were read in `snapshot`. */
  outcome: { snapshot: string } | { error: unknown } | null = null
  readonly #change: LargeChange

  constructor(
    connection: FeedConnection,
    target: FeedTarget,
    { since, organizations, report, onEnd }: LargeReadOptions,
  ) {
    this.since = since
    this.organizations = organizations
    this.#change = connection.readLarge(since, organizations, (page) => {
      const { changes, signingKeys, unreadable } = convertChanges(page.changes)
      const skipped = target.applyPage(changes, signingKeys, page)
      // A later page writes the rows of the step `restrict` again. Its skipped rows are reported then.
      report(page.step === 'restrict' ? [] : [...unreadable, ...skipped])
    })
    const settle = (outcome: LargeRead['outcome']): void => {
      this.outcome = outcome
      onEnd()
    }
    this.#change.done.then(
      (snapshot) => settle({ snapshot }),
      (error: unknown) => settle({ error }),
    )
  }

  /** Stops reading. Resolves when no further page will be applied. */
  async stop(): Promise<void> {
    this.#change.close()
    await this.#change.done.catch(() => undefined)
  }
}
