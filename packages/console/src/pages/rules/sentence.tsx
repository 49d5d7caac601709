/** An access rule as a sentence, such as "Block 203.0.113.0/24 for everything". */

import type { AccessRule } from '@keyward/contract'
import { IconEye, IconShieldCheck, IconShieldLock, IconShieldX } from '@tabler/icons-react'

import { useName } from '../../api/names.ts'
import { countryName } from '../../parts/country-field.tsx'
import { LicenseKey } from '../../parts/license-key.tsx'
import { TextLink } from '../../parts/parts.tsx'
import { text } from '../../text.ts'
import { setPath } from './paths.ts'

const t = text.rules.sentence
const ICONS = { BLACKLIST: IconShieldX, EXCLUSION: IconShieldCheck, RESTRICTION: IconShieldLock } as const

function CustomerName({ id }: { id: string }) {
  const name = useName(id)
  return <TextLink href={`/customers/${id}`}>{name === '' ? text.types.CUSTOMER : name}</TextLink>
}

function ProductName({ id }: { id: string }) {
  const name = useName(id)
  return <TextLink href={`/products/${id}`}>{name === '' ? text.scopes.PRODUCT : name}</TextLink>
}

function Value({ rule: { type, value } }: { rule: AccessRule }) {
  if (type === 'CUSTOMER') return <CustomerName id={value} />
  if (type === 'COUNTRY') return <span className="name">{countryName(value)}</span>
  return <span className="mono">{value}</span>
}

function Scope({ rule: { scope, scopeId } }: { rule: AccessRule }) {
  if (scope === 'LICENSE' && scopeId !== null)
    return (
      <>
        {t.forLicense} <LicenseKey id={scopeId} />
      </>
    )
  if (scope === 'PRODUCT' && scopeId !== null)
    return (
      <>
        {t.for} <ProductName id={scopeId} />
      </>
    )
  return t.forEverything
}

/** The sentence alone. */
export function RuleSentence({ rule }: { rule: AccessRule }) {
  const { kind, mode } = rule
  const isWatching = mode === 'MONITOR'
  return (
    <>
      <span className="verb" data-kind={isWatching ? 'WATCH' : kind}>
        {isWatching ? t.would[kind] : t.verbs[kind]}
      </span>{' '}
      <Value rule={rule} /> <Scope rule={rule} />
    </>
  )
}

/** The sentence with its icon, its set and its note. */
export function RuleCell({ rule }: { rule: AccessRule }) {
  const { kind, mode, type, set, note } = rule
  const Icon = mode === 'MONITOR' ? IconEye : ICONS[kind]
  return (
    <div className="rule">
      <span className="verb" data-kind={mode === 'MONITOR' ? 'WATCH' : kind} title={text.types[type]}>
        <Icon size={18} stroke={1.5} aria-hidden="true" />
      </span>
      <div className="wrap">
        <RuleSentence rule={rule} />
        {(set !== null || (note !== null && note !== '')) && (
          <span className="sub">
            {set !== null && (
              <>
                {t.ofSet} <TextLink href={setPath(set)}>{set}</TextLink>{' '}
              </>
            )}
            {note}
          </span>
        )}
      </div>
    </div>
  )
}
