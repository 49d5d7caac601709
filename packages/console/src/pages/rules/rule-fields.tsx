import type { RuleKind, RuleMode, RuleScope, RuleType } from '@keyward/contract'
import { RULE_KINDS, RULE_MODES, TYPES_OF_KIND } from '@keyward/contract/vocabulary'
import { Input, SegmentedControl, Select, Stack, Text } from '@mantine/core'

import { ChoiceCards } from '../../parts/choice-cards.tsx'
import { ProductField } from '../../parts/choose.tsx'
import { SearchField } from '../../parts/search-field.tsx'
import { text } from '../../text.ts'

const t = text.rules

export interface Scope {
  scope: RuleScope
  scopeId: string | null
}

function isOneOf<Value extends string>(values: readonly Value[], value: string | null): value is Value {
  return values.some((one) => one === value)
}

export function KindField({ value, onChange }: { value: RuleKind; onChange: (kind: RuleKind) => void }) {
  return (
    <ChoiceCards
      label={t.kind}
      values={RULE_KINDS}
      names={text.kinds}
      hints={t.kindHints}
      value={value}
      onChange={onChange}
    />
  )
}

export function ModeField({ value, onChange }: { value: RuleMode; onChange: (mode: RuleMode) => void }) {
  return (
    <Stack gap={4}>
      <Input.Label component="div">{t.mode}</Input.Label>
      <SegmentedControl
        aria-label={t.mode}
        data={RULE_MODES.map((mode) => ({ value: mode, label: t.modes[mode] }))}
        value={value}
        onChange={(mode) => isOneOf(RULE_MODES, mode) && onChange(mode)}
      />
      <Text size="xs" c="dimmed">
        {t.modeHints[value]}
      </Text>
    </Stack>
  )
}

export function TypeField({
  kind,
  value,
  onChange,
  error,
}: {
  kind: RuleKind
  value: RuleType
  onChange: (type: RuleType) => void
  error?: string | undefined
}) {
  const types = TYPES_OF_KIND[kind]
  return (
    <Select
      label={t.type}
      data={types.map((type) => ({ value: type, label: text.types[type] }))}
      value={value}
      onChange={(type) => isOneOf(types, type) && onChange(type)}
      allowDeselect={false}
      error={error}
    />
  )
}

const SCOPES = ['ORGANIZATION', 'PRODUCT', 'LICENSE'] as const

export function ScopeField({
  value: { scope, scopeId },
  onChange,
  error,
}: {
  value: Scope
  onChange: (scope: Scope) => void
  error?: string | undefined
}) {
  return (
    <Stack gap="xs">
      <Stack gap={4}>
        <Input.Label component="div">{t.scope}</Input.Label>
        <SegmentedControl
          aria-label={t.scope}
          data={SCOPES.map((one) => ({ value: one, label: text.scopes[one] }))}
          value={scope}
          onChange={(one) => isOneOf(SCOPES, one) && onChange({ scope: one, scopeId: null })}
        />
      </Stack>
      {scope === 'PRODUCT' && (
        <ProductField
          label={t.product}
          value={scopeId}
          onChange={(id) => onChange({ scope, scopeId: id })}
          error={error}
        />
      )}
      {scope === 'LICENSE' && (
        <SearchField
          kind="license"
          label={t.license}
          description={t.licenseHint}
          value={scopeId}
          onChange={(id) => onChange({ scope, scopeId: id })}
          error={error}
        />
      )}
    </Stack>
  )
}
