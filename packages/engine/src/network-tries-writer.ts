/**
 * Putting rules about addresses into the tries of their scopes and taking them out. Which trie follows from the rule's
 * record; an entry lasts for as long as something hangs there.
 */
import { NONE } from './bucket-table.ts'
import type { IndexStore } from './index-store.ts'
import { NO_STEM, rootOf, stemCountOf, stemOf } from './network-tries.ts'
import { PrefixTrieWriter } from './prefix-trie-writer.ts'
import { ROW_WORDS, RULE_SCOPE, RULE_TRAITS, RULE_VALUE, rulePrefixLength, ruleType } from './records.ts'

export class NetworkTriesWriter {
  private readonly store: IndexStore
  private readonly trie: PrefixTrieWriter
  /** The root of a stem's trie while it is changed. */
  private readonly root = new Int32Array(1)

  constructor(store: IndexStore) {
    this.store = store
    this.trie = new PrefixTrieWriter(store.trieNodes, store.rules.region)
  }

  insert(rule: number): void {
    const { scopes, byStem } = this.store
    const stem = this.stemOf(rule)
    if (stem === NO_STEM) return this.trie.insert(scopes.region.words, this.rootOf(rule), rule)
    const hash = this.hashOf(rule, stem)
    const at = this.find(hash, this.scopeOf(rule))
    this.root[0] = at === NONE ? 0 : byStem.word(at, 1)
    this.trie.insert(this.root, 0, rule)
    if (at === NONE) byStem.insert(hash, this.root[0], 0)
    else byStem.setWord(at, 1, this.root[0])
    scopes.region.words[stemCountOf(this.scopeOf(rule), stem)]! += 1
  }

  remove(rule: number): void {
    const { scopes, byStem } = this.store
    const stem = this.stemOf(rule)
    if (stem === NO_STEM) return this.trie.remove(scopes.region.words, this.rootOf(rule), rule)
    const hash = this.hashOf(rule, stem)
    const at = this.find(hash, this.scopeOf(rule))
    this.root[0] = byStem.word(at, 1)
    this.trie.remove(this.root, 0, rule)
    if (this.root[0] === 0) byStem.remove(hash, at)
    else byStem.setWord(at, 1, this.root[0])
    scopes.region.words[stemCountOf(this.scopeOf(rule), stem)]! -= 1
  }

  /** The scope's entry with this hash, or NONE. */
  private find(hash: number, scope: number): number {
    const { byStem } = this.store
    for (let at = byStem.first(hash); at !== NONE; at = byStem.next(hash, at)) {
      if (this.scopeOf(this.trie.anyRuleBelow(byStem.word(at, 1))) === scope) return at
    }
    return NONE
  }

  private scopeOf(rule: number): number {
    return this.store.rules.region.words[rule * ROW_WORDS + RULE_SCOPE]!
  }

  private stemOf(rule: number): number {
    const traits = this.store.rules.region.words[rule * ROW_WORDS + RULE_TRAITS]!
    return stemOf(ruleType(traits), rulePrefixLength(traits))
  }

  private rootOf(rule: number): number {
    return rootOf(this.scopeOf(rule), ruleType(this.store.rules.region.words[rule * ROW_WORDS + RULE_TRAITS]!))
  }

  private hashOf(rule: number, stem: number): number {
    const { words } = this.store.rules.region
    const value = rule * ROW_WORDS + RULE_VALUE
    return this.store.networks.stemHash(this.scopeOf(rule), stem, words[value]!, words[value + 1]!)
  }
}
