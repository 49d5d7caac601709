/**
 * Issues a license file to an app that authenticates with an API key (docs/api.md#f4). The app gets a file only if a check from the same
 * caller would be VALID without a new slot. A validator decides that check. The caller's address and country are sent only to the
 * validator, in the body of a request. Every installation of an app requests a file once a day, so the requests of an organization are served
 * in batches.
 */

import { CODE_MESSAGES, type Code, filesEndWithLease } from '@keyward/contract'
import { type DecideResponse, MAX_DECIDE_BATCH } from '@keyward/contract/dry-run'
import { type IssuedFile, recordFilesIssued } from '@keyward/database/kysely'
import { sql } from 'kysely'

import { Batches } from '../admission/batches.ts'
import { runInside } from '../admission/fair-gate.ts'
import { shareOf } from '../admission/gates.ts'
import type { ReadContext } from '../context.ts'
import { ApiError } from '../http/problem.ts'
import type { AppFileRequest, AppFiles, CheckToDecide, Dependencies, SignedFile } from '../operations/dependencies.ts'
import { isUnstarted } from '../resources/licenses/license-rows.ts'
import { HOLDS_SLOT } from '../resources/machines/machines.ts'
import { type FileRow, selectForFile, signFile } from './issue.ts'

type Parts = Pick<Dependencies, 'gates' | 'readDb' | 'validators' | 'keyring'>

function checkOf(request: AppFileRequest): CheckToDecide {
  const { actor: _, ...check } = request
  return check
}

/** Returns the error for a rejected check, with status 409. NOT_FOUND also has this status, because a 404 would mean an unknown path. */
function rejection(code: Exclude<Code, 'VALID'>): ApiError {
  return new ApiError(code, CODE_MESSAGES[code], { status: 409 })
}

/** Throws unless the verdict and the row, which was read after the verdict, entitle the app to a file. */
function requireEntitled(
  { productId }: AppFileRequest,
  verdict: DecideResponse | null,
  row: FileRow | undefined,
): asserts row is FileRow {
  if (verdict === null) throw new ApiError('UNAVAILABLE', undefined, { headers: { 'retry-after': '1' } })
  if (verdict.code !== 'VALID') throw rejection(verdict.code)
  const isOfProduct = productId === undefined || row?.productId === productId
  if (!row || !isOfProduct) throw rejection('NOT_FOUND') // deleted or moved since the verdict
  if (verdict.needsSlot && !isUnstarted(row)) throw new ApiError('MACHINE_NOT_ACTIVE')
}

/**
 * Returns the end of the lease of the requesting machine, or null if the file does not depend on a lease. Throws MACHINE_NOT_ACTIVE if the
 * machine has lost its slot since the verdict. A check that a rule decides takes no slot.
 */
function leaseEndOf(
  row: FileRow,
  { machineId }: AppFileRequest,
  verdict: DecideResponse | null,
  leaseEnds: ReadonlyMap<string, Date | null>,
): Date | null {
  if (!filesEndWithLease(row) || verdict === null || verdict.decidedBy !== null) return null
  const leaseEnd = leaseEnds.get(`${row.id} ${machineId}`)
  if (leaseEnd === undefined) throw new ApiError('MACHINE_NOT_ACTIVE')
  return leaseEnd
}

/** Returns the ends of the leases of the requesting machines that hold a slot, by license and machine id. */
async function readLeaseEnds(
  { db, organizationId }: ReadContext,
  rowsByKey: ReadonlyMap<string, FileRow>,
  requests: readonly AppFileRequest[],
): Promise<ReadonlyMap<string, Date | null>> {
  const leased = requests.flatMap(({ licenseKey, machineId }) => {
    const row = rowsByKey.get(licenseKey)
    return row !== undefined && filesEndWithLease(row) && machineId !== null ? [{ id: row.id, machineId }] : []
  })
  if (leased.length === 0) return new Map()
  const { rows } = await sql<{ licenseId: string; machineId: Buffer; leaseEndsAt: Date | null }>`
    select license_id, machine_id, lease_ends_at from machines where organization_id = ${organizationId} and ${HOLDS_SLOT} and (license_id, machine_id) in (
      select * from unnest(${leased.map(({ id }) => id)}::uuid[], ${leased.map(({ machineId }) => Buffer.from(machineId))}::bytea[]))`.execute(
    db,
  )
  return new Map(rows.map((row) => [`${row.licenseId} ${row.machineId.toString()}`, row.leaseEndsAt]))
}

/** Issues the files of one organization. Uses one connection at a time. */
async function issueBatch(
  { validators, keyring, readDb: db }: Parts,
  organizationId: string,
  requests: readonly AppFileRequest[],
): Promise<readonly PromiseSettledResult<SignedFile>[]> {
  const context = { db, organizationId }
  const checks = requests.map(checkOf)
  const verdicts = await validators.decideAll(context, checks)
  const keys = checks.filter((_, i) => verdicts[i]?.code === 'VALID').map(({ licenseKey }) => licenseKey)
  const rows = keys.length === 0 ? [] : await selectForFile(context).where('licenses.key', 'in', keys).execute()
  const rowsByKey = new Map(rows.map((row) => [row.key, row]))
  const leaseEnds = await readLeaseEnds(context, rowsByKey, requests)
  const issued: IssuedFile[] = []
  const issue = async (request: AppFileRequest, verdict: DecideResponse | null) => {
    const row = rowsByKey.get(request.licenseKey)
    requireEntitled(request, verdict, row)
    const leaseEnd = leaseEndOf(row, request, verdict, leaseEnds)
    const { text } = await signFile(row, keyring, { leaseEnd })
    const machineId = request.machineId === null ? null : Buffer.from(request.machineId)
    issued.push({ organizationId, licenseId: row.id, machineId, actor: request.actor })
    return { licenseId: row.id, text }
  }
  const outcomes = await Promise.allSettled(requests.map((request, i) => issue(request, verdicts[i] ?? null)))
  if (issued.length > 0) await recordFilesIssued(db, issued)
  return outcomes
}

/** Creates the issuer. `onReject` is called for each request that is rejected because too many requests of its organization wait. */
export function createAppFiles(parts: Parts, onReject: () => void): AppFiles {
  const batches = new Batches<AppFileRequest, SignedFile>({
    maxBatch: MAX_DECIDE_BATCH,
    onReject,
    run: (organizationId, requests) =>
      runInside(parts.gates.reads, shareOf({ kind: 'apiKey', organizationId }), () =>
        issueBatch(parts, organizationId, requests),
      ),
  })
  return { issue: (organizationId, request) => batches.add(organizationId, request) }
}
