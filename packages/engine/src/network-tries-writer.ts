/**
 * Putting rules about addresses into the tries of their scopes and taking them out. Which trie follows from the rule's
 * record; an entry lasts for as long as something hangs there.
 */
import { NONE } from './bucket-table.ts'
import type { IndexStore } from './index-store.ts'
import { hasStem, rootOf, stemCountOf } from './network-tries.ts'
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
    const { byStem, rules, scopes } = this.store
    const scope = this.scopeOf(rule)
    const traits = rules.region.words[rule * ROW_WORDS + RULE_TRAITS]!
    const type = ruleType(traits)
    if (!hasStem(type, rulePrefixLength(traits))) {
      this.trie.insert(scopes.region.words, rootOf(scope, type), rule)
      return
    }
    const hash = this.hashOf(rule, scope, type)
    const at = this.find(hash, scope)
    this.root[0] = at === NONE ? 0 : byStem.word(at, 1)
    this.trie.insert(this.root, 0, rule)
    if (at === NONE) byStem.insert(hash, this.root[0], 0)
    else byStem.setWord(at, 1, this.root[0])
    scopes.region.words[stemCountOf(scope, type)]! += 1
  }

  remove(rule: number): void {
    const { byStem, rules, scopes } = this.store
    const scope = this.scopeOf(rule)
    const traits = rules.region.words[rule * ROW_WORDS + RULE_TRAITS]!
    const type = ruleType(traits)
    if (!hasStem(type, rulePrefixLength(traits))) {
      this.trie.remove(scopes.region.words, rootOf(scope, type), rule)
      return
    }
    const hash = this.hashOf(rule, scope, type)
    const at = this.find(hash, scope)
    this.root[0] = byStem.word(at, 1)
    this.trie.remove(this.root, 0, rule)
    if (this.root[0] === 0) byStem.remove(hash, at)
    else byStem.setWord(at, 1, this.root[0])
    scopes.region.words[stemCountOf(scope, type)]! -= 1
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

  private hashOf(rule: number, scope: number, type: number): number {
    const { words } = this.store.rules.region
    const value = rule * ROW_WORDS + RULE_VALUE
    return this.store.networks.stemHash(scope, type, words[value]!, words[value + 1]!)
  }
}
