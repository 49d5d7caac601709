// net.BlockList, which comes with Node: what one look-up costs with a number of networks in it. It compares them one after the
// other and tells only whether any covers the address, where Keyward's trie finds all that do.
import { BlockList } from 'node:net'

import { clientAddress, ruleRow } from '../data/rules.ts'

export interface BlockListCost {
  networks: number
  lookups: number
  nsPerLookup: number
}

/** Looks up addresses that no network covers, which is what nearly every check does. Takes about `durationMs`. */
export function measureBlockList(networks: number, durationMs: number): BlockListCost {
  const list = new BlockList()
  const shape = { seed: 1, licenses: 0, rules: 0, organizations: 2, machinesPerLicense: 0, maxMachines: null }
  for (let rule = 1, added = 0; added < networks; rule += shape.organizations) {
    const { type, value } = ruleRow(shape, rule)
    if (type !== 'IP') continue
    const [address = '', length] = value.split('/')
    const family = address.includes(':') ? 'ipv6' : 'ipv4'
    list.addSubnet(address, Number(length ?? 32), family)
    added += 1
  }
  const start = performance.now()
  let lookups = 0
  while (performance.now() - start < durationMs) {
    list.check(clientAddress(1, lookups), 'ipv4')
    lookups += 1
  }
  return { networks, lookups, nsPerLookup: ((performance.now() - start) * 1e6) / lookups }
}
