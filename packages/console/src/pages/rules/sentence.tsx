/** An access rule as a sentence, such as "Block 203.0.113.0/24 for everything". */

import type { AccessRule } from '@keyward/contract'
import { oneLine } from '@keyward/contract/text'
import { IconEye, IconShieldCheck, IconShieldLock, IconShieldX } from '@tabler/icons-react'

import { countryName } from '../../parts/country-field.tsx'
import { LicenseKey, Name } from '../../parts/name.tsx'
import { TextLink } from '../../parts/parts.tsx'
import { text } from '../../text.ts'
import { setPath } from './paths.ts'

const t = {
  verbs: { BLACKLIST: 'Block', EXCLUSION: 'Allow', RESTRICTION: 'Only allow' },
  would: { BLACKLIST: 'Would block', EXCLUSION: 'Would allow', RESTRICTION: 'Would only allow' },
}
const ICONS = { BLACKLIST: IconShieldX, EXCLUSION: IconShieldCheck, RESTRICTION: IconShieldLock } as const

function Value({ rule: { type, value } }: { rule: AccessRule }) {
  if (type === 'CUSTOMER') return <Name id={value} href={`/customers/${value}`} fallback={text.types.CUSTOMER} />
  if (type === 'COUNTRY') return <span className="name">{countryName(value)}</span>
  return <span className="mono">{oneLine(value)}</span>
}

function Scope({ rule: { scope, scopeId } }: { rule: AccessRule }) {
  if (scope === 'LICENSE' && scopeId !== null)
    return (
      <>
        for the license <LicenseKey id={scopeId} />
      </>
    )
  if (scope === 'PRODUCT' && scopeId !== null)
    return (
      <>
        for <Name id={scopeId} href={`/products/${scopeId}`} fallback={text.scopes.PRODUCT} />
      </>
    )
  return 'for everything'
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
                Set <TextLink href={setPath(set)}>{set}</TextLink>{' '}
              </>
            )}
            {note}
          </span>
        )}
      </div>
    </div>
  )
}
