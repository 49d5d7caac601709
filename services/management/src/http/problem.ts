/**
 * Refusals as values: a `Refusal` carries a code of the contract and what may be told to the caller, and nothing else ever leaves.
 * Errors that are not refusals become INTERNAL or UNAVAILABLE without their message; that goes to the log alone.
 */
import { type Problem, type ProblemCode, PROBLEMS } from '@keyward/contract'
import { isConnectionFailure, isRetryable, isServerUnavailable } from '@keyward/database'

export interface Fault {
  /** `#/…` into the body, or `?name` for a query parameter. */
  pointer: string
  detail: string
}

interface Extras {
  /** Where the status differs from the code's own. */
  status?: number
  errors?: Fault[]
  ruleId?: string
  mergedInto?: string
  headers?: Record<string, string>
}

export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: ProblemCode
  readonly extras: Extras

  constructor(code: ProblemCode, detail?: string, extras: Extras = {}) {
    super(detail ?? PROBLEMS[code].title)
    this.code = code
    this.extras = extras
  }

  get status(): number {
    return this.extras.status ?? PROBLEMS[this.code].status
  }
}

/** 422 with one fault in the body. */
export function invalid(pointer: string, detail: string): Refusal {
  return invalidAll([{ pointer, detail }])
}

/** More places than this are counted, not listed. */
const maxListed = 100

/** 422 with every fault, or as many as are listed at most. */
export function invalidAll(faults: readonly Fault[], most = maxListed): Refusal {
  const errors = faults.slice(0, most)
  const [first] = errors
  const more = faults.length - errors.length
  const counted = `${faults.length} places are wrong`
  const detail = faults.length === 1 && first ? `${first.pointer} ${first.detail}.` : `${counted}.`
  return new Refusal('INVALID_REQUEST', more > 0 ? `${counted}; ${more} more than are listed.` : detail, { errors })
}

/** The same answer for what does not exist and for what belongs to another organization. */
export function notFound(what: string): Refusal {
  return new Refusal('NOT_FOUND', `There is no ${what} with this id.`)
}

export function toProblem(refusal: Refusal, instance: string, requestId: string): Problem {
  const { errors, ruleId, mergedInto } = refusal.extras
  return {
    type: `urn:keyward:problem:${refusal.code.toLowerCase().replaceAll('_', '-')}`,
    title: PROBLEMS[refusal.code].title,
    status: refusal.status,
    detail: refusal.message,
    instance,
    code: refusal.code,
    requestId,
    ...(errors && { errors }),
    ...(ruleId !== undefined && { ruleId }),
    ...(mergedInto !== undefined && { mergedInto }),
  }
}

/** Every error as a refusal. `unexpected`: it belongs in the log. */
export function toRefusal(error: unknown): { refusal: Refusal; unexpected: boolean } {
  if (error instanceof Refusal) return { refusal: error, unexpected: false }
  if (isServerUnavailable(error) || isConnectionFailure(error) || isRetryable(error))
    return { refusal: new Refusal('UNAVAILABLE', undefined, { headers: { 'retry-after': '1' } }), unexpected: true }
  return { refusal: new Refusal('INTERNAL'), unexpected: true }
}
