/**
 * A checked build of the engine: a writer that verifies every record after each write section, and a reader that verifies the records that a
 * verdict refers to. Both sides verify the same facts, so a record is checked where it is written and where it is read. The engine itself
 * contains no check, and costs nothing for them.
 */

import {
  type Check,
  createIndex,
  type IndexOptions,
  type IndexWriter,
  type SharedIndex,
  type Verdict,
} from '../../src/index.ts'
import { openStore, type ReadStore } from '../../src/memory/index-store.ts'
import {
  CREDENTIAL_ORGANIZATION_SHIFT,
  CREDENTIAL_PRODUCT,
  CREDENTIAL_STATE,
  CUSTOMER_CHILDREN,
  CUSTOMER_ORGANIZATION,
  dependsOnOrigin,
  EXPIRY,
  EXTENSION_ENTITLEMENTS,
  EXTENSION_LICENSE,
  EXTENSION_WORDS,
  GENERATION,
  ID,
  KIND_CREDENTIAL,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
  LICENSE_CUSTOMER,
  LICENSE_EXTENSION,
  LICENSE_KEY_HASH,
  LICENSE_PRODUCT,
  LICENSE_SCOPE_SHIFT,
  LICENSE_STATE,
  NODE_CHILDREN,
  NODE_DEPTH,
  NODE_ENDS,
  NODE_WORDS,
  ORGANIZATION_ADDRESS_RULES,
  ORGANIZATION_CHILDREN,
  ORGANIZATION_SCOPE,
  PRODUCT_CHILDREN,
  PRODUCT_ENTITLEMENTS,
  PRODUCT_ORGANIZATION,
  PRODUCT_SCOPE,
  RESTRICTION_TYPE_COUNT,
  restrictionType,
  ROW_DOUBLES,
  ROW_WORDS,
  RULE_DORMANT,
  RULE_MONITOR,
  RULE_NEXT,
  RULE_ORGANIZATION,
  RULE_RESTRICTION,
  RULE_SCOPE,
  RULE_TRAITS,
  RULE_VALUE,
  ruleType,
  SCOPE_COUNTS,
  SCOPE_OWNER,
  SCOPE_OWNER_KIND,
  SCOPE_RESTRICTED_UNTIL,
  SCOPE_ROOT4,
  SCOPE_ROOT6,
  SCOPE_RULES,
  TYPE_CUSTOMER,
  TYPE_HWID,
  TYPE_IP4,
  VALUE_LENGTH,
  VALUE_REFERENCES,
} from '../../src/memory/layout.ts'
import { type LinearHashTable, NONE } from '../../src/memory/linear-hash-table.ts'
import { IndexReader } from '../../src/read/index-reader.ts'

const ascending = (a: number, b: number): number => a - b
const KINDS = [KIND_ORGANIZATION, KIND_CREDENTIAL, KIND_PRODUCT, KIND_CUSTOMER, KIND_LICENSE, KIND_RULE]

export function createCheckedIndex(options: IndexOptions = {}): IndexWriter {
  const onSection = (): void => {
    const problems = new Checker(store).problems()
    if (problems.length > 0) throw new Error(`The index is not sound: ${problems.slice(0, 5).join('; ')}`)
    options.onSection?.()
  }
  const writer = createIndex({ ...options, onSection })
  const store = openStore(writer.shared)
  return writer
}

/** Opens a reader for tests in which no other thread writes. */
export function openCheckedIndex(shared: SharedIndex): IndexReader {
  return new CheckedReader(shared)
}

class CheckedReader extends IndexReader {
  readonly #records: ReadStore

  constructor(shared: SharedIndex) {
    super(shared)
    this.#records = openStore(shared)
  }

  override decide(check: Check, nowMs: number, verdict: Verdict): void {
    super.decide(check, nowMs, verdict)
    if (verdict.busy || verdict.license < 0) return
    const problems = new Checker(this.#records).problemsOfVerdict(check, nowMs, verdict)
    if (problems.length > 0) throw new Error(`The verdict refers to unsound records: ${problems.join('; ')}`)
  }
}

class Checker {
  readonly #store: ReadStore
  readonly #problems: string[] = []

  constructor(store: ReadStore) {
    this.#store = store
  }

  /** Verifies all records and tables. */
  problems(): readonly string[] {
    const { lookup } = this.#store
    const live = new Map(KINDS.map((kind) => [kind, this.#rowsOf(kind)]))
    for (const [kind, rows] of live) this.#expect(rows.length, lookup.slab(kind).live, `live rows of kind ${kind}`)
    for (const license of live.get(KIND_LICENSE)!) this.#license(license)
    for (const rule of live.get(KIND_RULE)!) this.#rule(rule)
    this.#counts(live)
    this.#scopes(live.get(KIND_RULE)!)
    this.#values(live)
    for (const table of ['byId', 'byKey', 'byRule'] as const) this.#table(table, this.#store[table])
    this.#table('machines', this.#store.machines.table)
    // A rule that a change in phases keeps in force has no id.
    const withId = live.get(KIND_RULE)!.filter((row) => this.#rowWithId(KIND_RULE, row) === row).length
    const others = KINDS.reduce((sum, kind) => sum + (kind === KIND_RULE ? 0 : live.get(kind)!.length), 0)
    this.#expect(this.#store.byId.entries, withId + others, 'entries of ids')
    for (const [kind, rows] of live) {
      for (const row of rows)
        if (kind !== KIND_RULE) this.#expect(this.#rowWithId(kind, row), row, `row of the id of kind ${kind}`)
    }
    return this.#problems
  }

  /** Verifies the records that a verdict refers to. */
  problemsOfVerdict(check: Check, nowMs: number, verdict: Verdict): readonly string[] {
    const { license, product } = verdict
    this.#expect(this.#word(KIND_LICENSE, license, GENERATION), verdict.licenseGeneration, 'generation of the license')
    this.#expect(this.#word(KIND_LICENSE, license, LICENSE_PRODUCT), product, 'product of the license')
    this.#expect(
      this.#word(KIND_PRODUCT, product, PRODUCT_ORGANIZATION),
      check.organization,
      'organization of the license',
    )
    this.#license(license)
    const matched = [...verdict.matched.subarray(0, verdict.matchedCount)]
    for (const [i, rule] of matched.entries()) {
      this.#rule(rule)
      this.#expect(
        this.#word(KIND_RULE, rule, GENERATION),
        verdict.matchedGenerations[i]!,
        'generation of a matched rule',
      )
      this.#expect(this.#word(KIND_RULE, rule, RULE_ORGANIZATION), check.organization, 'organization of a matched rule')
      this.#isTrue(this.#double(KIND_RULE, rule, EXPIRY) > nowMs, 'a matched rule has not expired')
      const scope = this.#word(KIND_RULE, rule, RULE_SCOPE) * ROW_WORDS
      const { words } = this.#store.scopes.region
      const owners: Record<number, number> = {
        [KIND_LICENSE]: license,
        [KIND_PRODUCT]: product,
        [KIND_ORGANIZATION]: check.organization,
      }
      this.#expect(
        words[scope + SCOPE_OWNER]!,
        owners[words[scope + SCOPE_OWNER_KIND]!] ?? -1,
        'owner of the scope of a matched rule',
      )
    }
    this.#isTrue(verdict.decidedBy < 0 || matched.includes(verdict.decidedBy), 'the deciding rule has matched')
    return this.#problems
  }

  #license(row: number): void {
    const { licenses, lookup, extensions } = this.#store
    const product = this.#word(KIND_LICENSE, row, LICENSE_PRODUCT)
    const customer = this.#word(KIND_LICENSE, row, LICENSE_CUSTOMER)
    const organization = this.#word(KIND_PRODUCT, product, PRODUCT_ORGANIZATION)
    this.#isLive(KIND_PRODUCT, product)
    this.#isLive(KIND_CUSTOMER, customer)
    this.#isLive(KIND_ORGANIZATION, organization)
    this.#expect(
      this.#word(KIND_CUSTOMER, customer, CUSTOMER_ORGANIZATION),
      organization,
      'organization of the customer',
    )
    const at = row * ROW_WORDS + LICENSE_KEY_HASH
    this.#isTrue(
      lookup.findLicense(licenses.region.words.slice(at, at + 4), null) !== 0,
      'the key of a license is found',
    )
    const extension = this.#word(KIND_LICENSE, row, LICENSE_EXTENSION)
    if (extension !== 0)
      this.#expect(
        extensions.region.words[extension * EXTENSION_WORDS + EXTENSION_LICENSE]!,
        row,
        'license of the extension',
      )
    this.#scopeOf(KIND_LICENSE, row, this.#word(KIND_LICENSE, row, LICENSE_STATE) >>> LICENSE_SCOPE_SHIFT)
  }

  /** Verifies that the scope record of an owner refers to the owner. */
  #scopeOf(kind: number, owner: number, scope: number): void {
    if (scope === 0) return
    const { words } = this.#store.scopes.region
    this.#expect(words[scope * ROW_WORDS + SCOPE_OWNER]!, owner, 'owner of a scope')
    this.#expect(words[scope * ROW_WORDS + SCOPE_OWNER_KIND]!, kind, 'kind of the owner of a scope')
  }

  #rule(row: number): void {
    const { lookup, rules, scopes } = this.#store
    const { words } = rules.region
    const base = row * ROW_WORDS
    const scope = words[base + RULE_SCOPE]!
    const type = ruleType(words[base + RULE_TRAITS]!)
    this.#isLive(KIND_ORGANIZATION, words[base + RULE_ORGANIZATION]!)
    this.#isTrue(scopes.region.words[scope * ROW_WORDS + SCOPE_RULES]! > 0, 'the scope of a rule counts rules')
    if (type < TYPE_HWID) return
    const found = new Int32Array(64)
    const [v0 = 0, v1 = 0, v2 = 0, v3 = 0] = words.subarray(base + RULE_VALUE, base + RULE_VALUE + 4)
    const count = lookup.findRules(scope, type, v0, v1, v2, v3, found)
    this.#isTrue(found.subarray(0, count).includes(row), 'a rule is found by its value')
    if (type === TYPE_CUSTOMER) this.#isLive(KIND_CUSTOMER, v0)
  }

  /** Verifies the counts of the rows that refer to organizations, products and customers. */
  #counts(live: ReadonlyMap<number, readonly number[]>): void {
    const expected = new Map<string, number>()
    const count = (kind: number, row: number, word: number): void => {
      const key = [kind, row, word].join()
      expected.set(key, (expected.get(key) ?? 0) + 1)
    }
    for (const row of live.get(KIND_PRODUCT)!)
      count(KIND_ORGANIZATION, this.#word(KIND_PRODUCT, row, PRODUCT_ORGANIZATION), ORGANIZATION_CHILDREN)
    for (const row of live.get(KIND_CUSTOMER)!)
      count(KIND_ORGANIZATION, this.#word(KIND_CUSTOMER, row, CUSTOMER_ORGANIZATION), ORGANIZATION_CHILDREN)
    for (const row of live.get(KIND_CREDENTIAL)!) {
      const state = this.#word(KIND_CREDENTIAL, row, CREDENTIAL_STATE)
      count(KIND_ORGANIZATION, state >>> CREDENTIAL_ORGANIZATION_SHIFT, ORGANIZATION_CHILDREN)
      const product = this.#word(KIND_CREDENTIAL, row, CREDENTIAL_PRODUCT)
      if (product !== 0) count(KIND_PRODUCT, product, PRODUCT_CHILDREN)
    }
    for (const row of live.get(KIND_LICENSE)!) {
      count(KIND_PRODUCT, this.#word(KIND_LICENSE, row, LICENSE_PRODUCT), PRODUCT_CHILDREN)
      count(KIND_CUSTOMER, this.#word(KIND_LICENSE, row, LICENSE_CUSTOMER), CUSTOMER_CHILDREN)
    }
    for (const row of live.get(KIND_RULE)!) {
      const organization = this.#word(KIND_RULE, row, RULE_ORGANIZATION)
      const type = ruleType(this.#word(KIND_RULE, row, RULE_TRAITS))
      count(KIND_ORGANIZATION, organization, ORGANIZATION_CHILDREN)
      if (dependsOnOrigin(type)) count(KIND_ORGANIZATION, organization, ORGANIZATION_ADDRESS_RULES)
      if (type === TYPE_CUSTOMER) count(KIND_CUSTOMER, this.#word(KIND_RULE, row, RULE_VALUE), CUSTOMER_CHILDREN)
    }
    const words: [number, number][] = [
      [KIND_ORGANIZATION, ORGANIZATION_CHILDREN],
      [KIND_ORGANIZATION, ORGANIZATION_ADDRESS_RULES],
      [KIND_PRODUCT, PRODUCT_CHILDREN],
      [KIND_CUSTOMER, CUSTOMER_CHILDREN],
    ]
    for (const [kind, word] of words) {
      for (const row of live.get(kind)!)
        this.#expect(
          this.#word(kind, row, word),
          expected.get([kind, row, word].join()) ?? 0,
          `count ${word} of kind ${kind}`,
        )
    }
    for (const row of live.get(KIND_ORGANIZATION)!)
      this.#scopeOf(KIND_ORGANIZATION, row, this.#word(KIND_ORGANIZATION, row, ORGANIZATION_SCOPE))
    for (const row of live.get(KIND_PRODUCT)!)
      this.#scopeOf(KIND_PRODUCT, row, this.#word(KIND_PRODUCT, row, PRODUCT_SCOPE))
  }

  /** Verifies the counts, the tries and the times of all scopes. */
  #scopes(rules: readonly number[]): void {
    const { nodes, scopes } = this.#store
    const { words, doubles } = scopes.region
    const byScope = Map.groupBy(rules, (row) => this.#word(KIND_RULE, row, RULE_SCOPE))
    this.#expect(byScope.size, scopes.live, 'live scopes')
    let nodesFound = 0
    for (const [scope, rows] of byScope) {
      const base = scope * ROW_WORDS
      this.#expect(words[base + SCOPE_RULES]!, rows.length, 'rules of a scope')
      const typeOf = (row: number): number => ruleType(this.#word(KIND_RULE, row, RULE_TRAITS))
      for (let type = TYPE_HWID; type <= TYPE_CUSTOMER; type++)
        this.#expect(
          words[base + SCOPE_COUNTS + type - TYPE_HWID]!,
          rows.filter((row) => typeOf(row) === type).length,
          `rules of type ${type}`,
        )
      for (const [slot, type] of [
        [SCOPE_ROOT4, TYPE_IP4],
        [SCOPE_ROOT6, TYPE_IP4 + 1],
      ] as const) {
        const found: number[] = []
        nodesFound += this.#trie(words[base + slot]!, found)
        const expected = rows.filter((row) => typeOf(row) === type)
        this.#expect(found.toSorted(ascending).join(), expected.toSorted(ascending).join(), 'rules of a trie')
      }
      for (let type = 0; type < RESTRICTION_TYPE_COUNT; type++) {
        const ends = rows
          .filter(
            (row) =>
              (this.#word(KIND_RULE, row, RULE_TRAITS) & (RULE_RESTRICTION | RULE_MONITOR | RULE_DORMANT)) ===
              RULE_RESTRICTION,
          )
          .filter((row) => restrictionType(typeOf(row)) === type)
          .map((row) => this.#double(KIND_RULE, row, EXPIRY))
        this.#expect(
          doubles[scope * ROW_DOUBLES + SCOPE_RESTRICTED_UNTIL / 2 + type]!,
          Math.max(0, ...ends),
          'time of restrictions',
        )
      }
    }
    this.#expect(nodesFound, nodes.live, 'live nodes')
  }

  /** Adds the rules below a child of a trie to `found`. Returns the number of nodes. */
  #trie(child: number, found: number[]): number {
    const add = (first: number): void => {
      for (let row = first; row !== 0; row = this.#word(KIND_RULE, row, RULE_NEXT)) found.push(row)
    }
    if (child < 0) add(~child)
    if (child <= 0) return 0
    const base = child * NODE_WORDS
    const { words } = this.#store.nodes.region
    const children = words.subarray(base + NODE_CHILDREN, base + NODE_DEPTH).filter((word) => word !== 0)
    const ends = words.subarray(base + NODE_ENDS, base + NODE_WORDS).filter((word) => word !== 0)
    this.#isTrue(children.length + ends.length >= 2, 'a node has at least two entries')
    for (const end of ends) add(end)
    return [...children].reduce((nodes, below) => nodes + this.#trie(below, found), 1)
  }

  #values(live: ReadonlyMap<number, readonly number[]>): void {
    const { extensions, memory, values } = this.#store
    const references = new Map<number, number>()
    const refer = (value: number): void => void (value !== 0 && references.set(value, (references.get(value) ?? 0) + 1))
    for (const row of live.get(KIND_PRODUCT)!) refer(this.#word(KIND_PRODUCT, row, PRODUCT_ENTITLEMENTS))
    let count = 0
    for (const row of live.get(KIND_LICENSE)!) {
      const extension = this.#word(KIND_LICENSE, row, LICENSE_EXTENSION)
      if (extension === 0) continue
      count++
      refer(extensions.region.words[extension * EXTENSION_WORDS + EXTENSION_ENTITLEMENTS]!)
    }
    this.#expect(count, extensions.live, 'live extensions')
    this.#expect(values.table.entries, references.size, 'values')
    const { words } = memory.regions.values
    for (const [value, expected] of references) {
      this.#expect(words[value * ROW_WORDS + VALUE_REFERENCES]!, expected, 'references of a value')
      this.#isTrue(words[value * ROW_WORDS + VALUE_LENGTH]! > 0, 'a value has a length')
    }
    this.#table('byValue', values.table)
  }

  /** Verifies that a search for the hash of each entry finds the entry. */
  #table(name: string, table: LinearHashTable): void {
    let entries = 0
    for (let bucket = 0; bucket < table.buckets; bucket++) {
      table.forEachIn(bucket, (position) => {
        entries++
        const hash = table.word(position, 0)
        let at = table.first(hash)
        while (at !== NONE && at !== position) at = table.next(hash, at)
        this.#expect(at, position, `position of an entry of ${name}`)
      })
    }
    this.#expect(entries, table.entries, `entries of ${name}`)
  }

  #rowsOf(kind: number): number[] {
    const { highest } = this.#store.lookup.slab(kind)
    return Array.from({ length: highest }, (_, i) => i + 1).filter((row) => this.#word(kind, row, GENERATION) !== 0)
  }

  #rowWithId(kind: number, row: number): number {
    const id = new Uint8Array(16)
    for (let i = 0; i < 4; i++) new DataView(id.buffer).setUint32(4 * i, this.#word(kind, row, ID + i))
    return this.#store.lookup.findId(kind, id)
  }

  #isLive(kind: number, row: number): void {
    this.#isTrue(this.#word(kind, row, GENERATION) !== 0, `the row ${row} of kind ${kind} is live`)
  }

  #word(kind: number, row: number, word: number): number {
    const { region, rowWords } = this.#store.lookup.slab(kind)
    return region.words[row * rowWords + word]!
  }

  #double(kind: number, row: number, double: number): number {
    const { region, rowWords } = this.#store.lookup.slab(kind)
    return region.doubles[(row * rowWords) / 2 + double]!
  }

  #expect(actual: number | string, expected: number | string, what: string): void {
    if (actual !== expected) this.#problems.push(`${what}: ${actual} instead of ${expected}`)
  }

  #isTrue(isTrue: boolean, what: string): void {
    if (!isTrue) this.#problems.push(`not: ${what}`)
  }
}
