import type { RuleKind, RuleMode, RuleScope, RuleType } from '@keyward/contract'
import { RULE_KINDS, RULE_MODES, TYPES_OF_KIND } from '@keyward/contract/vocabulary'
import { Card, Checkbox, Input, SegmentedControl, Select, Stack, Text, Textarea, Title } from '@mantine/core'
import type { ReactNode } from 'react'

import type { FieldErrors } from '../../api/input.ts'
import { ChoiceCards } from '../../parts/choice-cards.tsx'
import { ProductField } from '../../parts/choose.tsx'
import { type Expiry, ExpiryField, NEVER } from '../../parts/expiry-field.tsx'
import type { Fields } from '../../parts/fields.ts'
import { SearchField } from '../../parts/search-field.tsx'
import { text } from '../../text.ts'

const KIND_HINTS: Readonly<Record<RuleKind, string>> = {
  BLACKLIST: 'Rejects matching checks.',
  EXCLUSION: 'Lets matching checks through. Also skips blacklists, restrictions and the machine limit.',
  RESTRICTION: 'Means "only these". Rejects checks that match no restriction of this type.',
}

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
      label="Kind"
      values={RULE_KINDS}
      names={text.kinds}
      hints={KIND_HINTS}
      value={value}
      onChange={onChange}
    />
  )
}

export function ModeField({ value, onChange }: { value: RuleMode; onChange: (mode: RuleMode) => void }) {
  return (
    <Stack gap={4}>
      <Input.Label component="div">Mode</Input.Label>
      <SegmentedControl
        aria-label="Mode"
        data={RULE_MODES.map((mode) => ({ value: mode, label: text.modes[mode] }))}
        value={value}
        onChange={(mode) => isOneOf(RULE_MODES, mode) && onChange(mode)}
      />
      <Text size="xs" c="dimmed">
        {text.modeHints[value]}
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
      label="What it matches"
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
        <Input.Label component="div">Applies to</Input.Label>
        <SegmentedControl
          aria-label="Applies to"
          data={SCOPES.map((one) => ({ value: one, label: text.scopes[one] }))}
          value={scope}
          onChange={(one) => isOneOf(SCOPES, one) && onChange({ scope: one, scopeId: null })}
        />
      </Stack>
      {scope === 'PRODUCT' && (
        <ProductField
          label="Product"
          value={scopeId}
          onChange={(id) => onChange({ scope, scopeId: id })}
          error={error}
        />
      )}
      {scope === 'LICENSE' && (
        <SearchField
          kind="license"
          label="License"
          description="Search by the beginning of the license key."
          value={scopeId}
          onChange={(id) => onChange({ scope, scopeId: id })}
          error={error}
        />
      )}
    </Stack>
  )
}

/** The fields of a rule that can change later. */
export interface Options {
  expiry: Expiry
  /** Whether an exclusion also lets suspended and expired licenses through. */
  isGenerous: boolean
  note: string
}

export const NO_OPTIONS: Options = { expiry: NEVER, isGenerous: false, note: '' }

export function OptionFields({ kind, form, errors }: { kind: RuleKind; form: Fields<Options>; errors: FieldErrors }) {
  const { values, change } = form
  return (
    <>
      {kind === 'EXCLUSION' && (
        <Checkbox
          label="Also let suspended and expired licenses through"
          checked={values.isGenerous}
          onChange={(event) => change({ isGenerous: event.currentTarget.checked })}
        />
      )}
      <ExpiryField value={values.expiry} onChange={(expiry) => change({ expiry })} error={errors['expiresAt']} />
      <Textarea
        label="Note"
        description="A note for your colleagues. It has no effect."
        {...form.text('note', errors)}
      />
    </>
  )
}

/** The kind, type and scope of imported rules that do not state their own. */
export interface Defaults extends Scope {
  kind: RuleKind
  type: RuleType
}

export const BLACKLISTED_ADDRESSES: Defaults = { kind: 'BLACKLIST', type: 'IP', scope: 'ORGANIZATION', scopeId: null }

/** A card with the fields of `Defaults`, and with `children` below. */
export function DefaultFields({
  value,
  onChange,
  children,
}: {
  value: Defaults
  onChange: (value: Defaults) => void
  children?: ReactNode
}) {
  const change = (part: Partial<Defaults>) => onChange({ ...value, ...part })
  const title = 'For values without further columns'
  return (
    <Card withBorder component="section" aria-label={title}>
      <Stack>
        <Title order={2} size="h5">
          {title}
        </Title>
        <KindField value={value.kind} onChange={(kind) => change({ kind, type: 'IP' })} />
        <TypeField kind={value.kind} value={value.type} onChange={(type) => change({ type })} />
        <ScopeField value={value} onChange={change} />
        {children}
      </Stack>
    </Card>
  )
}
