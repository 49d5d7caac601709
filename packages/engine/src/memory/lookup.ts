import { hashPair, hashWords, readWord, scramble } from './bits.ts'
import {
  ID,
  KEY_HASH,
  KIND_CREDENTIAL,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
  ROW_WORDS,
  RULE_SCOPE,
  RULE_TRAITS,
  RULE_VALUE,
  ruleType,
  SECRET,
} from './layout.ts'
import { type BucketTable, NONE } from './linear-hash-table.ts'
import type { MachineSet } from './machine-set.ts'
import type { Memory } from './shared-memory.ts'
/**
 * Finding rows by what identifies them: any row by its id, a license by its key, a credential by its secret's hash, a
 * rule by scope, type and value. Tables hold a 32-bit hash and the row, 8 bytes an entry; the record decides whether it
 * is the one, and compares all of it. Rows are below 2^28, the four bits above say what the entry is where a table holds
 * several kinds. Rules have a table of their own: most checks look for several and find none, so it should stay in the
 * processor's caches, which one that held a million license keys would not.
 */
import type { Arena } from './slab.ts'

const KIND_SHIFT = 28
const ROW_MASK = (1 << KIND_SHIFT) - 1

// What an entry of the table of keys is.
const BY_KEY = 1
const BY_SECRET = 2

/** The structures that a directory finds its way in. */
export interface DirectoryParts {
  readonly memory: Memory
  readonly organizations: Arena
  readonly credentials: Arena
  readonly products: Arena
  readonly customers: Arena
  readonly licenses: Arena
  readonly rules: Arena
  readonly byId: BucketTable
  readonly byKey: BucketTable
  readonly byRule: BucketTable
  readonly machines: MachineSet
}

export class Directory {
  private readonly byId: BucketTable
  private readonly byKey: BucketTable
  private readonly byRule: BucketTable
  private readonly arenas: readonly (Arena | undefined)[]
  private readonly store: DirectoryParts
  private readonly seed: number
  /** The license key's hash within its organization, as `combineKey` left it. */
  readonly key = new Int32Array(4)
  private readonly secret = new Int32Array(8)
  /** Written so that the reads that only warm the cache have a use. */
  touched = 0

  constructor(store: DirectoryParts) {
    this.store = store
    this.byId = store.byId
    this.byKey = store.byKey
    this.byRule = store.byRule
    this.seed = store.memory.shared.hashKey[0]! ^ store.memory.shared.hashKey[2]!
    const arenas: Arena[] = []
    arenas[KIND_ORGANIZATION] = store.organizations
    arenas[KIND_CREDENTIAL] = store.credentials
    arenas[KIND_PRODUCT] = store.products
    arenas[KIND_CUSTOMER] = store.customers
    arenas[KIND_LICENSE] = store.licenses
    arenas[KIND_RULE] = store.rules
    this.arenas = arenas
  }

  arena(kind: number): Arena {
    const arena = this.arenas[kind]
    if (arena === undefined) throw new Error(`no rows of kind ${kind}`)
    return arena
  }

  /** The row with this id, 0 when there is none. */
  findId(kind: number, id: Uint8Array): number {
    const i0 = readWord(id, 0)
    const i1 = readWord(id, 4)
    const i2 = readWord(id, 8)
    const i3 = readWord(id, 12)
    const { region, rowWords } = this.arena(kind)
    const { words } = region
    const hash = hashWords(i0, i1, i2, i3, this.seed + kind)
    for (let at = this.byId.first(hash); at !== NONE; at = this.byId.next(hash, at)) {
      const entry = this.byId.word(at, 1)
      if (entry >>> KIND_SHIFT !== kind) continue
      const row = entry & ROW_MASK
      const id0 = row * rowWords + ID
      if (words[id0] === i0 && words[id0 + 1] === i1 && words[id0 + 2] === i2 && words[id0 + 3] === i3) return row
    }
    return 0
  }

  addId(kind: number, row: number): void {
    this.byId.insert(this.idHash(kind, row), (kind << KIND_SHIFT) | row, 0)
  }

  removeId(kind: number, row: number): void {
    removeEntry(this.byId, this.idHash(kind, row), (kind << KIND_SHIFT) | row)
  }

  private idHash(kind: number, row: number): number {
    const { region, rowWords } = this.arena(kind)
    const { words } = region
    const at = row * rowWords + ID
    return hashWords(words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!, this.seed + kind)
  }

  /**
   * Makes of a license key's hash and its organization's generation one value of 128 bits, into `key`: the same key in two
   * organizations is two keys. Each word is XORed with its own bijection of the generation.
   */
  combineKey(hash: Int32Array, organizationGeneration: number): void {
    this.key[0] = hash[0]! ^ scramble(organizationGeneration)
    this.key[1] = hash[1]! ^ scramble(organizationGeneration + 0x3c6ef372)
    this.key[2] = hash[2]! ^ scramble(organizationGeneration + 0x1b873593)
    this.key[3] = hash[3]! ^ scramble(organizationGeneration + 0x510e527f)
  }

  /** Begins to fetch what `findLicense` will read first; gives nothing of meaning. */
  touchKey(): number {
    return this.byKey.touch(this.key[0]!)
  }

  /**
   * The license whose key is `key`, 0 when there is none. While its record is on the way from memory, the machine's
   * entry is already being fetched.
   */
  findLicense(machineHash: Int32Array): number {
    const { key, byKey } = this
    const { words } = this.store.licenses.region
    const hash = key[0]!
    for (let at = byKey.first(hash); at !== NONE; at = byKey.next(hash, at)) {
      const entry = byKey.word(at, 1)
      if (entry >>> KIND_SHIFT !== BY_KEY) continue
      const row = entry & ROW_MASK
      this.touched = this.store.machines.touch(row, machineHash)
      const at0 = row * ROW_WORDS + KEY_HASH
      if (words[at0] !== hash || words[at0 + 1] !== key[1]) continue
      if (words[at0 + 2] === key[2] && words[at0 + 3] === key[3]) return row
    }
    return 0
  }

  addLicenseKey(row: number): void {
    const hash = this.store.licenses.region.words[row * ROW_WORDS + KEY_HASH]!
    this.byKey.insert(hash, (BY_KEY << KIND_SHIFT) | row, 0)
  }

  removeLicenseKey(row: number): void {
    const hash = this.store.licenses.region.words[row * ROW_WORDS + KEY_HASH]!
    removeEntry(this.byKey, hash, (BY_KEY << KIND_SHIFT) | row)
  }

  /** The credential with this secret's SHA-256 (32 bytes), 0 when there is none. */
  findSecret(secretHash: Uint8Array): number {
    const { secret, byKey } = this
    for (let i = 0; i < 8; i++) secret[i] = readWord(secretHash, 4 * i)
    const { words } = this.store.credentials.region
    const hash = secret[0]!
    for (let at = byKey.first(hash); at !== NONE; at = byKey.next(hash, at)) {
      const entry = byKey.word(at, 1)
      if (entry >>> KIND_SHIFT !== BY_SECRET) continue
      const row = entry & ROW_MASK
      if (secret.every((word, i) => words[row * ROW_WORDS + SECRET + i] === word)) return row
    }
    return 0
  }

  addSecret(row: number): void {
    const hash = this.store.credentials.region.words[row * ROW_WORDS + SECRET]!
    this.byKey.insert(hash, (BY_SECRET << KIND_SHIFT) | row, 0)
  }

  removeSecret(row: number): void {
    const hash = this.store.credentials.region.words[row * ROW_WORDS + SECRET]!
    removeEntry(this.byKey, hash, (BY_SECRET << KIND_SHIFT) | row)
  }

  /**
   * Writes the rules of one scope and type with exactly this value into `out` and gives their number: at most one of
   * each kind, besides an expired twin now and then.
   */
  findRules(scope: number, type: number, v0: number, v1: number, v2: number, v3: number, out: Int32Array): number {
    const { byRule } = this
    const { words } = this.store.rules.region
    const hash = this.valueHash(scope, type, v0)
    let count = 0
    for (let at = byRule.first(hash); at !== NONE && count < out.length; at = byRule.next(hash, at)) {
      const row = byRule.word(at, 1)
      const base = row * ROW_WORDS
      if (words[base + RULE_SCOPE] !== scope || ruleType(words[base + RULE_TRAITS]!) !== type) continue
      const value = base + RULE_VALUE
      if (words[value] !== v0 || words[value + 1] !== v1 || words[value + 2] !== v2) continue
      if (words[value + 3] === v3) out[count++] = row
    }
    return count
  }

  /** Begins to fetch what `findRules` will read first; gives nothing of meaning. */
  touchRules(scope: number, type: number, v0: number): number {
    return this.byRule.touch(this.valueHash(scope, type, v0))
  }

  addRule(row: number): void {
    this.byRule.insert(this.ruleHash(row), row, 0)
  }

  removeRule(row: number): void {
    removeEntry(this.byRule, this.ruleHash(row), row)
  }

  private ruleHash(row: number): number {
    const { words } = this.store.rules.region
    const base = row * ROW_WORDS
    return this.valueHash(words[base + RULE_SCOPE]!, ruleType(words[base + RULE_TRAITS]!), words[base + RULE_VALUE]!)
  }

  /** The first word of a machine id's keyed hash is enough here; countries and customers are few in one scope. */
  private valueHash(scope: number, type: number, v0: number): number {
    return hashPair(v0, (scope << 3) | type, this.seed)
  }
}

function removeEntry(table: BucketTable, hash: number, entry: number): void {
  for (let at = table.first(hash); at !== NONE; at = table.next(hash, at)) {
    if (table.word(at, 1) !== entry) continue
    table.remove(hash, at)
    return
  }
}
