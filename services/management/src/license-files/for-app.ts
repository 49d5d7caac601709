/**
 * Issues a license file to an app that authenticates with an API key (docs/api.md#f4). The app gets a file only if a check from the same
 * caller would be VALID without a new slot. A validator decides that check. The caller's address and country are sent only to the
 * validator, in the body of a request. Every installation of an app requests a file once a day, so the requests of an organization are served
 * in batches.
 */

import { CODE_MESSAGES, type Code } from '@keyward/contract'
import { type DecideResponse, MAX_DECIDE_BATCH } from '@keyward/contract/dry-run'
import { type IssuedFile, recordFilesIssued } from '@keyward/database/kysely'

import { Batches } from '../admission/batches.ts'
import { runInside } from '../admission/fair-gate.ts'
import { shareOf } from '../admission/gates.ts'
import { ApiError } from '../http/problem.ts'
import type { AppFileRequest, AppFiles, CheckToDecide, Dependencies, SignedFile } from '../operations/dependencies.ts'
import { isUnstarted } from '../resources/licenses/license-rows.ts'
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
  const issued: IssuedFile[] = []
  const issue = async (request: AppFileRequest, verdict: DecideResponse | null) => {
    const row = rowsByKey.get(request.licenseKey)
    requireEntitled(request, verdict, row)
    const text = await signFile(row, keyring)
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
