/** Creates an access rule. Before the person saves the rule, shows its effect in one sentence, the stored form of a range, and warnings. */

import { accessRules, type RuleKind, type RuleMode, type RuleType } from '@keyward/contract'
import { RULE_KINDS, RULE_TYPES, TYPES_OF_KIND } from '@keyward/contract/vocabulary'
import { Alert, Button, Card, Grid, Group, Stack, Text, TextInput, Title } from '@mantine/core'
import { IconAlertTriangle } from '@tabler/icons-react'
import type { FormEvent } from 'react'
import { Link, useLocation } from 'wouter'

import { call } from '../../api/client.ts'
import { useCall, useRead } from '../../api/hooks.ts'
import type { FieldErrors } from '../../api/input.ts'
import { useName } from '../../api/names.ts'
import { CountryField, countryName } from '../../parts/country-field.tsx'
import { timeOf } from '../../parts/expiry-field.tsx'
import { type Fields as FieldsOf, orNull, useFields } from '../../parts/fields.ts'
import { fieldErrors } from '../../parts/form.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { SearchField } from '../../parts/search-field.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { useUrlParameters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { parseRange } from './range.ts'
import {
  KindField,
  ModeField,
  NO_OPTIONS,
  OptionFields,
  type Options,
  type Scope,
  ScopeField,
  TypeField,
} from './rule-fields.tsx'

const t = {
  does: {
    BLACKLIST: (what: string, where: string) => `Rejects checks ${what}, ${where}.`,
    EXCLUSION: (what: string, where: string) =>
      `Lets checks ${what} through, ${where}. They need no machine slot, and no blacklist or restriction applies to them.`,
    RESTRICTION: (what: string, where: string) =>
      `Allows checks ${what}, ${where}. Checks that match no restriction of this type are rejected.`,
  } satisfies Record<RuleKind, (what: string, where: string) => string>,
  what: {
    IP: (value: string) => `from ${value}`,
    HWID: (value: string) => `of the machine ${value}`,
    COUNTRY: (value: string) => `from ${value}`,
    CUSTOMER: (value: string) => `of the customer ${value}`,
  } satisfies Record<RuleType, (value: string) => string>,
  where: {
    PRODUCT: (name: string) => `for licenses of ${name}`,
    LICENSE: (key: string) => `for the license ${key}`,
  },
}

interface Draft extends Scope, Options {
  kind: RuleKind
  mode: RuleMode
  type: RuleType
  value: string
}

type Form = FieldsOf<Draft>

/** Returns the draft that the parameters of the URL describe. Links on other screens set a machine id or an address, for example. */
function draftOf(search: URLSearchParams): Draft {
  const kind = RULE_KINDS.find((one) => one === search.get('kind')) ?? 'BLACKLIST'
  const type = RULE_TYPES.find((one) => one === search.get('type')) ?? 'IP'
  return { kind, mode: 'ENFORCE', type, value: search.get('value') ?? '', ...scopeOf(search), ...NO_OPTIONS }
}

function scopeOf(search: URLSearchParams): Scope {
  const license = search.get('license')
  const product = search.get('product')
  if (license !== null) return { scope: 'LICENSE', scopeId: license }
  if (product !== null) return { scope: 'PRODUCT', scopeId: product }
  return { scope: 'ORGANIZATION', scopeId: null }
}

function Warning({ children }: { children: string }) {
  return (
    <Alert color="orange" icon={<IconAlertTriangle size={18} />} py="xs">
      {children}
    </Alert>
  )
}

/** Warns about rules that affect the person's own address or country, and about ranges that contain all addresses. */
function Warnings({ draft: { kind, type, value } }: { draft: Draft }) {
  const { data: own } = useRead(accessRules.readMyIp, {})
  if (type === 'COUNTRY' && kind === 'BLACKLIST')
    return own?.country !== null && own?.country === value ? (
      <Warning>{`Your own address is in this country, ${countryName(value)}.`}</Warning>
    ) : null
  const range = type === 'IP' ? parseRange(value.trim()) : null
  if (range === null) return null
  const ip = own?.ip ?? null
  const covers = ip !== null && range.contains(ip)
  return (
    <>
      {range.prefixLength === 0 && <Warning>This range contains every address.</Warning>}
      {kind === 'BLACKLIST' && covers && <Warning>{`This range contains your own address, ${ip}.`}</Warning>}
      {kind === 'RESTRICTION' && ip !== null && !covers && (
        <Warning>{`Your own address, ${ip}, is not in this range.`}</Warning>
      )}
    </>
  )
}

/** The effect of the rule in one sentence. */
function Effect({ draft }: { draft: Draft }) {
  const { kind, mode, type, value, scope, scopeId } = draft
  const customerName = useName(type === 'CUSTOMER' && value !== '' ? value : null)
  const productName = useName(scope === 'PRODUCT' ? scopeId : null)
  const licenseKey = useName(scope === 'LICENSE' ? scopeId : null)
  const range = type === 'IP' ? parseRange(value.trim()) : null
  const names: Partial<Record<RuleType, string>> = {
    IP: range?.canonical ?? '',
    COUNTRY: value && countryName(value),
    CUSTOMER: customerName,
  }
  const shown = names[type] ?? value
  const name = scope === 'PRODUCT' ? productName : licenseKey
  const where = scope === 'ORGANIZATION' ? 'for all products' : t.where[scope](name === '' ? '…' : name)
  return (
    <Card withBorder component="section" aria-label="What this rule does" role="status">
      <Stack gap="sm">
        <Title order={2} size="h4">
          What this rule does
        </Title>
        {shown === '' ? (
          <Text c="dimmed" size="sm">
            Enter a value to see the effect of the rule.
          </Text>
        ) : (
          <Text>{t.does[kind](t.what[type](shown), where)}</Text>
        )}
        {mode === 'MONITOR' && (
          <Text size="sm">The mode is Monitor: the rule counts its matches and decides nothing.</Text>
        )}
        <Warnings draft={draft} />
      </Stack>
    </Card>
  )
}

function ValueField({ form, errors }: { form: Form; errors: FieldErrors }) {
  const { type, value } = form.values
  const onChange = (next: string) => form.change({ value: next })
  const error = errors['value']
  if (type === 'COUNTRY') return <CountryField value={value} onChange={onChange} error={error} required />
  if (type === 'CUSTOMER')
    return (
      <SearchField
        kind="customer"
        label="Customer"
        description={text.valueHints.CUSTOMER}
        value={orNull(value)}
        onChange={(id) => onChange(id ?? '')}
        error={error}
      />
    )
  const typed = value.trim()
  const range = type === 'IP' ? parseRange(typed) : null
  return (
    <Stack gap={4}>
      <TextInput
        label="Value"
        description={text.valueHints[type]}
        {...form.text('value', errors)}
        classNames={{ input: 'mono' }}
        spellCheck={false}
        autoFocus
        required
      />
      {range !== null && range.canonical !== typed && (
        <Text size="sm" role="status">
          <span className="mono">{`${typed} → ${range.canonical}`}</span>{' '}
          <Text span size="xs" c="dimmed">
            Is stored in this form.
          </Text>
        </Text>
      )}
    </Stack>
  )
}

function Fields({ form, errors }: { form: Form; errors: FieldErrors }) {
  const { values, change } = form
  const chooseKind = (kind: RuleKind) => {
    const keepsType = TYPES_OF_KIND[kind].includes(values.type)
    change({ kind, ...(!keepsType && { type: 'IP', value: '' }) })
  }
  return (
    <Stack>
      <KindField value={values.kind} onChange={chooseKind} />
      <TypeField
        kind={values.kind}
        value={values.type}
        onChange={(type) => change({ type, value: '' })}
        error={errors['type']}
      />
      <ValueField form={form} errors={errors} />
      <ScopeField value={values} onChange={change} error={errors['scopeId']} />
      <ModeField value={values.mode} onChange={(mode) => change({ mode })} />
      <OptionFields kind={values.kind} form={form} errors={errors} />
    </Stack>
  )
}

export default function NewRule() {
  const [, navigate] = useLocation()
  const form: Form = useFields(draftOf(useUrlParameters()))
  const create = useCall(accessRules.createAccessRule, {
    done: 'Created the rule.',
    undo: ({ id }) => call(accessRules.deleteAccessRule, { params: { id } }),
    quiet: true,
    onDone: () => navigate('/rules'),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const { expiry, isGenerous, note, scopeId, value, ...rule } = form.values
    const body = {
      ...rule,
      expiresAt: timeOf(expiry),
      value: rule.type === 'HWID' ? value : value.trim(),
      ...(rule.scope !== 'ORGANIZATION' && { scopeId }),
      ...(note !== '' && { note }),
      ...(rule.kind === 'EXCLUSION' && { allowSuspendedOrExpired: isGenerous }),
    }
    create.mutate({ body })
  }
  const errors = fieldErrors(create.error)
  return (
    <Screen title="New rule">
      <form onSubmit={submit} noValidate>
        <Grid gap="lg">
          <Grid.Col span={{ base: 12, md: 7 }}>
            <Fields form={form} errors={errors} />
          </Grid.Col>
          <Grid.Col span={{ base: 12, md: 5 }}>
            <Stack className="beside">
              <Effect draft={form.values} />
              {Object.keys(errors).length === 0 && <ErrorMessage error={create.error} />}
              <Group>
                <Button type="submit" loading={create.isPending}>
                  Create rule
                </Button>
                <Button variant="default" component={Link} href="/rules">
                  Cancel
                </Button>
              </Group>
            </Stack>
          </Grid.Col>
        </Grid>
      </form>
    </Screen>
  )
}
