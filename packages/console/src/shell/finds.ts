/** The results of the search for a text: found items, commands, sections, and the items that were opened last. */

import { parseNetwork } from '@keyward/address/network'
import { canonicalRuleValue } from '@keyward/address/rule-values'
import type { Permission } from '@keyward/contract'
import type { SearchResults } from '@keyward/contract/management/search'
import type { Me } from '@keyward/contract/management/sign-in'
import { oneLine } from '@keyward/contract/text'

import { recentItems } from '../api/recent.ts'
import { text } from '../text.ts'
import type { Section } from './sections.ts'
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })

interface Offer {
  path: string
  /** Whether the offer rejects checks. Such an offer is never chosen before the person moves to it. */
  blocks?: boolean
  label: string
  /** The second line of the offer. */
  detail?: string
}

export interface Group {
  title: string
  offers: readonly Offer[]
}

interface Command extends Offer {
  needs: Permission
  /** Other words by which a person may search for the command. */
  words: string
}

const COMMANDS: readonly Command[] = [
  { path: '/licenses/new', label: 'New license', needs: 'licenses.write', words: 'create add' },
  { path: '/rules/new', label: 'Block an address', needs: 'licenses.write', words: 'blacklist ban new rule ip' },
  {
    path: '/rules/new?kind=BLACKLIST&type=COUNTRY',
    label: 'Block a country',
    needs: 'licenses.write',
    words: 'blacklist ban new rule geo',
  },
  {
    path: '/rules/new?kind=BLACKLIST&type=HWID',
    label: 'Block a machine',
    needs: 'licenses.write',
    words: 'blacklist ban new rule fingerprint hwid',
  },
  {
    path: '/rules/new?kind=EXCLUSION&type=HWID',
    label: 'Let a machine through',
    needs: 'licenses.write',
    words: 'exclusion whitelist let through new rule',
  },
  { path: '/rules/import', label: 'Import access rules', needs: 'licenses.write', words: 'upload csv blacklist' },
  { path: '/licenses/import', label: 'Import licenses', needs: 'licenses.write', words: 'upload csv' },
  { path: '/customers?new=1', label: 'New customer', needs: 'customers.write', words: 'create add' },
  { path: '/products?new=1', label: 'New product', needs: 'products.write', words: 'create add' },
  { path: '/team?new=1', label: 'Invite a member', needs: 'credentials.write', words: 'member colleague user' },
]

function has(words: string, typed: string): boolean {
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => words.toLowerCase().includes(word))
}

/** Returns commands that use the text as a value, such as a new rule for a pasted address. */
function commandsAbout(typed: string, me: Me): Offer[] {
  if (!me.permissions.includes('licenses.read') || typed === '' || typed.length > 255) return []
  const range = parseNetwork(typed) === null ? null : canonicalRuleValue('IP', typed)
  const shown = range ?? typed
  const rule = new URLSearchParams({ kind: 'BLACKLIST', type: range === null ? 'HWID' : 'IP', value: shown }).toString()
  const block = {
    path: `/rules/new?${rule}`,
    label: range === null ? `Block the machine ${shown}` : `Block ${shown}`,
    blocks: true,
  }
  const canWrite = me.permissions.includes('licenses.write')
  const matches = {
    path: `/rules?${new URLSearchParams({ matches: typed }).toString()}`,
    label: `Rules that match ${shown}`,
  }
  if (range !== null) return canWrite ? [matches, block] : [matches]
  // Text with a space or an @ is a name or an e-mail address, not a machine id.
  if (/[\s@]/.test(typed) || typed.length < 6) return []
  if (UUID.test(typed)) return [{ path: `/licenses/${typed}`, label: `License with the id ${typed}` }]
  const checks = {
    path: `/activity?${new URLSearchParams({ machineId: typed }).toString()}`,
    label: `Checks of the machine ${shown}`,
  }
  return canWrite ? [checks, block] : [checks]
}

const E_MAIL = /<([^<>\s]+@[^<>\s]+)>/
const KEY_LABEL = /^(?:license\s*key|license|key)\s*:\s*/i
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i

/** Returns the value in a pasted text: the address in `Name <address>`, or the key after `License key:`. */
export function pastedValue(pasted: string): string {
  return (E_MAIL.exec(pasted)?.[1] ?? pasted).trim().replace(KEY_LABEL, '')
}

/** Returns the groups of commands, sections and recent items that match a text. They need no request. */
export function localGroups(typed: string, sections: readonly Section[], me: Me): { first: Group[]; last: Group[] } {
  const allowed = COMMANDS.filter(({ needs }) => me.permissions.includes(needs))
  const commands = allowed.filter(({ label, words }) => has(`${label} ${words}`, typed))
  const places = sections.filter(({ label }) => has(label, typed)).map(({ path, label }) => ({ path, label }))
  const recent = recentItems()
    .filter(({ label }) => typed === '' || has(label, typed))
    .map(({ path, label, kind }) => ({ path, label, detail: kind }))
  return {
    first: typed === '' ? [{ title: 'Recent', offers: recent }] : [],
    last: [
      { title: 'Commands', offers: typed === '' ? commands.slice(0, 4) : commands },
      { title: 'Go to', offers: places },
      { title: 'With this text', offers: commandsAbout(typed, me) },
    ],
  }
}

/** Returns the groups of the items that the server found. */
export function foundGroups({ licenses, customers, products, machines, accessRules }: SearchResults): Group[] {
  return [
    {
      title: 'Licenses',
      offers: licenses.map(({ id, key, status }) => ({
        path: `/licenses/${id}`,
        label: key,
        detail: text.statuses[status],
      })),
    },
    {
      title: 'Customers',
      offers: customers.map(({ id, name, email }) => ({
        path: `/customers/${id}`,
        label: name ?? email,
        detail: name === null ? '' : email,
      })),
    },
    {
      title: 'Machines',
      offers: machines.map(({ id, licenseId, machineId, hostname, lastSeenAt }) => ({
        path: `/licenses/${licenseId}#${id}`,
        label: oneLine(machineId),
        detail: hostname === null ? `last seen ${day.format(new Date(lastSeenAt))}` : oneLine(hostname),
      })),
    },
    {
      title: 'Access rules',
      offers: accessRules.map(({ kind, type, value }) => ({
        path: `/rules?${new URLSearchParams({ matches: value }).toString()}`,
        label: oneLine(value),
        detail: `${text.kinds[kind]}, ${text.types[type]}`,
      })),
    },
    {
      title: 'Products',
      offers: products.map(({ id, name }) => ({ path: `/products/${id}`, label: name })),
    },
  ]
}
