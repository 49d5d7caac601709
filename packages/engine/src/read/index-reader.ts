/**
 * Reading an index, one reader a thread. Every read runs under the seqlock and is repeated when the writer came
 * between, so what comes back was all true at one moment.
 */
import type { Check, CredentialView, Verdict } from '../check.ts'
import { writeBytes } from '../memory/bits.ts'
import { IndexStore } from '../memory/index-store.ts'
import { KeyedHash } from '../memory/keyed-hash.ts'
import {
  CREDENTIAL_ORGANIZATION_SHIFT,
  CREDENTIAL_REVOKED,
  CREDENTIAL_STATE,
  EXPIRY,
  ID,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
  ORGANIZATION_ADDRESS_RULES,
  ROW_DOUBLES,
  ROW_WORDS,
  GENERATION,
} from '../memory/layout.ts'
import { MAX_ATTEMPTS, ReadLock } from '../memory/seqlock.ts'
import type { SharedIndex } from '../memory/shared-memory.ts'
import { decide } from './decide.ts'
import { RuleMatching } from './rule-matching.ts'

/** Returned instead of a row: nothing has this id, key or secret. */
export const UNKNOWN = -1
/** Returned instead of a row: the writer was writing during every one of 1,000 attempts. */
export const BUSY = -2

export interface ReaderOptions {
  /** false: read without the lock. Only the test that shows what the lock is for uses it. */
  locked?: boolean
}

export class IndexReader {
  private readonly store: IndexStore
  private readonly matching: RuleMatching
  private readonly lock: ReadLock
  private readonly keyHash: KeyedHash
  private readonly machineHash: KeyedHash

  constructor(shared: SharedIndex, options: ReaderOptions = {}) {
    this.store = new IndexStore(shared)
    this.matching = new RuleMatching(this.store)
    this.lock = new ReadLock(this.store.memory.control, options.locked ?? true)
    this.keyHash = new KeyedHash(shared.hashKey)
    this.machineHash = new KeyedHash(shared.hashKey)
  }

  /** Decides a check at `nowMs` into `verdict`. The index is not changed: a slot is only asked for, in `verdict.slot`. */
  decide(check: Check, nowMs: number, verdict: Verdict): void {
    const { lock, store, machineHash } = this
    this.readKey(check)
    const hasMachine = check.machineIdLength > 0
    if (hasMachine) machineHash.hash(check.machineId, check.machineIdLength)
    verdict.machineHash0 = hasMachine ? machineHash.words[0]! : 0
    verdict.machineHash1 = hasMachine ? machineHash.words[1]! : 0
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const version = lock.begin(attempt)
      if ((version & 1) !== 0) continue
      decide(store, this.matching, check, machineHash.words, nowMs, verdict)
      if (lock.unchanged(version)) return
    }
    verdict.busy = true
  }

  /**
   * Hashes the license key for `decide`, and begins to fetch where the license is found: memory works while the
   * machine id is hashed. The organization's generation is read outside the lock: it is the same in all the row's life.
   */
  private readKey(check: Check): void {
    const { store, keyHash } = this
    const generation = store.organizations.region.words[check.organization * ROW_WORDS + GENERATION] ?? 0
    keyHash.hash(check.licenseKey, check.licenseKeyLength)
    store.directory.combineKey(keyHash.words, generation)
    store.directory.touched = store.directory.touchKey()
  }

  /** The row of the credential with this secret's SHA-256 (32 bytes); -1: unknown, -2: busy. */
  findCredential(secretHash: Uint8Array): number {
    return this.read(() => this.store.directory.findSecret(secretHash) || UNKNOWN)
  }

  /**
   * Returns the row of the license with this key (the first `length` bytes) in an organization and writes its id, 16
   * bytes, to `id`. Returns UNKNOWN or BUSY when there is nothing to return.
   */
  findLicense(organization: number, key: Uint8Array, length: number, id: Uint8Array): number {
    const { keyHash, store } = this
    const { words } = store.licenses.region
    keyHash.hash(key, length)
    return this.read(() => {
      const generation = store.organizations.region.words[organization * ROW_WORDS + GENERATION] ?? 0
      if (generation === 0) return UNKNOWN
      store.directory.combineKey(keyHash.words, generation)
      const row = store.directory.findLicense(this.machineHash.words)
      if (row === 0) return UNKNOWN
      writeBytes(words, row * ROW_WORDS + ID, 4, id)
      return row
    })
  }

  /** The row of an organization; -1: unknown, -2: busy. */
  findOrganization(id: Uint8Array): number {
    return this.read(() => this.store.directory.findId(KIND_ORGANIZATION, id) || UNKNOWN)
  }

  /**
   * What a check needs of the credential in this row. False when the row holds none, or busy; when another credential
   * has taken the row, `out.generation` is not the one remembered.
   */
  credential(row: number, out: CredentialView): boolean {
    const { lock, store } = this
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const version = lock.begin(attempt)
      if ((version & 1) !== 0) continue
      const { words, doubles } = store.credentials.region
      const state = words[row * ROW_WORDS + CREDENTIAL_STATE]! | 0
      const organization = state >>> CREDENTIAL_ORGANIZATION_SHIFT
      out.generation = words[row * ROW_WORDS + GENERATION]! | 0
      out.organization = organization
      out.revoked = (state & CREDENTIAL_REVOKED) !== 0
      out.expiresAtMs = doubles[row * ROW_DOUBLES + EXPIRY] ?? 0
      out.addressRules = store.organizations.region.words[organization * ROW_WORDS + ORGANIZATION_ADDRESS_RULES]! > 0
      if (lock.unchanged(version)) return out.generation !== 0
    }
    return false
  }

  /** Writes the id of a license; false when the row no longer holds it. The generation is the verdict's. */
  licenseId(row: number, generation: number, out: Uint8Array): boolean {
    return this.id(KIND_LICENSE, row, generation, out)
  }

  /** Writes the id of a product; false when the row no longer holds it. The generation is the verdict's. */
  productId(row: number, generation: number, out: Uint8Array): boolean {
    return this.id(KIND_PRODUCT, row, generation, out)
  }

  /** Writes the id of a rule; false when the row no longer holds it. The generation is the verdict's. */
  ruleId(row: number, generation: number, out: Uint8Array): boolean {
    return this.id(KIND_RULE, row, generation, out)
  }

  /** Writes the id of the organization in this row; false when there is none. */
  organizationId(row: number, out: Uint8Array): boolean {
    return this.id(KIND_ORGANIZATION, row, undefined, out)
  }

  /** Without the closure that `read` takes: it is asked for each entry that is recorded. */
  private id(kind: number, row: number, generation: number | undefined, out: Uint8Array): boolean {
    const { words } = this.store.directory.arena(kind).region
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const version = this.lock.begin(attempt)
      if ((version & 1) !== 0) continue
      const found = words[row * ROW_WORDS + GENERATION]
      const isThere = found !== undefined && found !== 0 && (generation === undefined || found === generation)
      if (isThere) writeBytes(words, row * ROW_WORDS + ID, 4, out)
      if (this.lock.unchanged(version)) return isThere
    }
    return false
  }

  /** Runs a look-up under the lock; BUSY when it never came through. For reads that are not on every check's path. */
  private read(look: () => number): number {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const version = this.lock.begin(attempt)
      if ((version & 1) !== 0) continue
      const found = look()
      if (this.lock.unchanged(version)) return found
    }
    return BUSY
  }
}

/** Opens an index for reading in this thread. */
export function openIndex(shared: SharedIndex, options?: ReaderOptions): IndexReader {
  return new IndexReader(shared, options)
}
