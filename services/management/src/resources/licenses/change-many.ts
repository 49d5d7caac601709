import type { RawBuilder } from 'kysely'

import type { WriteContext } from '../../context.ts'
import { anyId } from '../../crud/owned-rows.ts'
import { type NewEvent, writeEvents } from '../../events/writer.ts'
import { type LicenseRow, selectLicenses, showLicense } from './license-rows.ts'

/** A change of licenses that the transaction has locked. `before` contains them in the order of their ids. */
interface ManyChanges {
  before: readonly LicenseRow[]
  /** The statement that changes the licenses. */
  update: RawBuilder<unknown>
  /** Returns the event about a license, without the resource. */
  event: (before: LicenseRow) => Pick<NewEvent, 'type' | 'more'>
}

/** Changes licenses with one statement and writes an event for each of them. Returns the changed rows. */
export async function changeLicenses(
  context: WriteContext,
  { before, update, event }: ManyChanges,
): Promise<LicenseRow[]> {
  const { db, organizationId, actor } = context
  await update.execute(db)
  const after = await selectLicenses(context).where('licenses.id', '=', anyId(before)).orderBy('licenses.id').execute()
  const events = after.map((row, i) => {
    const former = before[i]!
    return { ...event(former), resource: showLicense(row), before: showLicense(former), organizationId, actor }
  })
  await writeEvents(db, events)
  return after
}
