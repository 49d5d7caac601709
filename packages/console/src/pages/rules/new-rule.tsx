/** Creates an access rule. Before the person saves the rule, shows its effect in one sentence, the stored form of a range, and warnings. */

import { accessRules, type RuleKind, type RuleMode, type RuleType } from '@keyward/contract'
import { RULE_KINDS, RULE_TYPES, TYPES_OF_KIND } from '@keyward/contract/vocabulary'
import { Alert, Button, Card, Checkbox, Grid, Group, Stack, Text, Textarea, TextInput, Title } from '@mantine/core'
import { IconAlertTriangle } from '@tabler/icons-react'
import { type FormEvent, useState } from 'react'
import { Link, useLocation } from 'wouter'

import { call } from '../../api/client.ts'
import { useCall, useRead } from '../../api/hooks.ts'
import type { FieldErrors } from '../../api/input.ts'
import { useName } from '../../api/names.ts'
import { CountryField, countryName } from '../../parts/country-field.tsx'
import { ExpiryField, NEVER, timeOf } from '../../parts/expiry-field.tsx'
import { fieldErrors } from '../../parts/form.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { SearchField } from '../../parts/search-field.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { useUrlParameters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { parseRange } from './range.ts'
import { KindField, ModeField, type Scope, ScopeField, TypeField } from './rule-fields.tsx'

const t = text.rules

interface Draft extends Scope {
  kind: RuleKind
  mode: RuleMode
  type: RuleType
  value: string
}

/** Returns the draft that the parameters of the URL describe. Links on other screens set a machine id or an address, for example. */
function draftOf(search: URLSearchParams): Draft {
  const kind = RULE_KINDS.find((one) => one === search.get('kind')) ?? 'BLACKLIST'
  const type = RULE_TYPES.find((one) => one === search.get('type')) ?? 'IP'
  return { kind, mode: 'ENFORCE', type, value: search.get('value') ?? '', ...scopeOf(search) }
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
      <Warning>{t.yourCountry(countryName(value))}</Warning>
    ) : null
  const range = type === 'IP' ? parseRange(value.trim()) : null
  if (range === null) return null
  const ip = own?.ip ?? null
  const covers = ip !== null && range.contains(ip)
  return (
    <>
      {range.prefixLength === 0 && <Warning>{t.coversAll}</Warning>}
      {kind === 'BLACKLIST' && covers && <Warning>{t.coversYou(ip)}</Warning>}
      {kind === 'RESTRICTION' && ip !== null && !covers && <Warning>{t.leavesYouOut(ip)}</Warning>}
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
  const where = scope === 'ORGANIZATION' ? t.where.ORGANIZATION : t.where[scope](name === '' ? '…' : name)
  return (
    <Card withBorder component="section" aria-label={t.summaryTitle} role="status">
      <Stack gap="sm">
        <Title order={2} size="h4">
          {t.summaryTitle}
        </Title>
        {shown === '' ? (
          <Text c="dimmed" size="sm">
            {t.incomplete}
          </Text>
        ) : (
          <Text>{t.does[kind](t.what[type](shown), where)}</Text>
        )}
        {mode === 'MONITOR' && <Text size="sm">{t.monitors}</Text>}
        <Warnings draft={draft} />
      </Stack>
    </Card>
  )
}

function ValueField({
  draft: { type, value },
  onChange,
  error,
}: {
  draft: Draft
  onChange: (value: string) => void
  error?: string | undefined
}) {
  if (type === 'COUNTRY') return <CountryField value={value} onChange={onChange} error={error} required />
  if (type === 'CUSTOMER')
    return (
      <SearchField
        kind="customer"
        label={t.customer}
        description={t.valueHints.CUSTOMER}
        value={value === '' ? null : value}
        onChange={(id) => onChange(id ?? '')}
        error={error}
      />
    )
  const typed = value.trim()
  const range = type === 'IP' ? parseRange(typed) : null
  return (
    <Stack gap={4}>
      <TextInput
        label={t.value}
        description={t.valueHints[type]}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
        error={error}
        classNames={{ input: 'mono' }}
        spellCheck={false}
        autoFocus
        required
      />
      {range !== null && range.canonical !== typed && (
        <Text size="sm" role="status">
          <span className="mono">{t.stored(typed, range.canonical)}</span>{' '}
          <Text span size="xs" c="dimmed">
            {t.storedHint}
          </Text>
        </Text>
      )}
    </Stack>
  )
}

function Form({
  draft,
  change,
  errors,
}: {
  draft: Draft
  change: (part: Partial<Draft>) => void
  errors: FieldErrors
}) {
  const chooseKind = (kind: RuleKind) => {
    const keepsType = TYPES_OF_KIND[kind].includes(draft.type)
    change({ kind, ...(!keepsType && { type: 'IP', value: '' }) })
  }
  return (
    <>
      <KindField value={draft.kind} onChange={chooseKind} />
      <TypeField
        kind={draft.kind}
        value={draft.type}
        onChange={(type) => change({ type, value: '' })}
        error={errors['type']}
      />
      <ValueField draft={draft} onChange={(value) => change({ value })} error={errors['value']} />
      <ScopeField value={draft} onChange={change} error={errors['scopeId']} />
      <ModeField value={draft.mode} onChange={(mode) => change({ mode })} />
    </>
  )
}

export default function NewRule() {
  const [, navigate] = useLocation()
  const [draft, setDraft] = useState<Draft>(draftOf(useUrlParameters()))
  const [note, setNote] = useState('')
  const [expiry, setExpiry] = useState(NEVER)
  const [isGenerous, setIsGenerous] = useState(false)
  const create = useCall(accessRules.createAccessRule, {
    done: t.created,
    undo: ({ id }) => call(accessRules.deleteAccessRule, { params: { id } }),
    quiet: true,
    onDone: () => navigate('/rules'),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const { kind, type, mode, scope, scopeId } = draft
    const body = {
      kind,
      mode,
      type,
      scope,
      expiresAt: timeOf(expiry),
      value: type === 'HWID' ? draft.value : draft.value.trim(),
      ...(scope !== 'ORGANIZATION' && { scopeId }),
      ...(note !== '' && { note }),
      ...(kind === 'EXCLUSION' && { allowSuspendedOrExpired: isGenerous }),
    }
    create.mutate({ body })
  }
  const errors = fieldErrors(create.error)
  return (
    <Screen title={t.new}>
      <form onSubmit={submit} noValidate>
        <Grid gap="lg">
          <Grid.Col span={{ base: 12, md: 7 }}>
            <Stack>
              <Form draft={draft} change={(part) => setDraft({ ...draft, ...part })} errors={errors} />
              {draft.kind === 'EXCLUSION' && (
                <Checkbox
                  label={t.evenExpired}
                  checked={isGenerous}
                  onChange={(event) => setIsGenerous(event.currentTarget.checked)}
                />
              )}
              <ExpiryField value={expiry} onChange={setExpiry} error={errors['expiresAt']} />
              <Textarea
                label={t.note}
                description={t.noteHint}
                value={note}
                onChange={(event) => setNote(event.currentTarget.value)}
                error={errors['note']}
              />
            </Stack>
          </Grid.Col>
          <Grid.Col span={{ base: 12, md: 5 }}>
            <Stack className="beside">
              <Effect draft={draft} />
              {Object.keys(errors).length === 0 && <ErrorMessage error={create.error} />}
              <Group>
                <Button type="submit" loading={create.isPending}>
                  {t.create}
                </Button>
                <Button variant="default" component={Link} href="/rules">
                  {text.cancel}
                </Button>
              </Group>
            </Stack>
          </Grid.Col>
        </Grid>
      </form>
    </Screen>
  )
}
