/** The window that creates an access rule. It shows the stored form of a range and warns when the range contains the user's own address. */

import { accessRule, license, myIp, page, type RuleKind, type RuleScope, type RuleType } from '@keyward/contract'
import { Alert, Checkbox, Select, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'

import { call, queryString } from '../api/client.ts'
import { useChange, useRead } from '../api/hooks.ts'
import { text } from '../text.ts'
import { contains, parseRange } from './addresses.ts'
import { ProductField } from './choose.tsx'
import { FormWindow } from './form.tsx'

const t = text.rules

const HINTS: Record<RuleType, string> = {
  IP: t.ipHint,
  HWID: t.hwidHint,
  COUNTRY: t.countryHint,
  CUSTOMER: t.customerHint,
}

const KIND_HINTS: Record<RuleKind, string> = {
  BLACKLIST: t.blacklistHint,
  EXCLUSION: t.exclusionHint,
  RESTRICTION: t.restrictionHint,
}

function choices<Value extends string>(names: Readonly<Record<Value, string>>) {
  return Object.entries<string>(names).map(([value, label]) => ({ value, label }))
}

function isKey<Value extends string>(names: Readonly<Record<Value, string>>, value: string | null): value is Value {
  return value !== null && value in names
}

async function licenseWith(key: string): Promise<string> {
  const { data } = await call({ method: 'GET', path: `/licenses${queryString({ key: key.trim() })}` }, page(license))
  const [found] = data
  if (!found) throw new Error(t.noLicense)
  return found.id
}

/** Notes on a range: its stored form, and warnings when it contains all addresses or the user's own. */
function RangeNotes({ value, kind }: { value: string; kind: RuleKind }) {
  const { data } = useRead('/access-rules/my-ip', myIp)
  const range = parseRange(value.trim())
  if (!range) return null
  const own = data?.ip ? parseRange(data.ip) : null
  const covers = own !== null && contains(range, own)
  return (
    <>
      {range.canonical !== value.trim() && <Alert color="blue">{t.stored(range.canonical)}</Alert>}
      {range.prefix === 0 && <Alert color="orange">{t.coversAll}</Alert>}
      {kind === 'BLACKLIST' && covers && <Alert color="orange">{t.coversYou(data?.ip ?? '')}</Alert>}
    </>
  )
}

export function NewRule({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const [kind, setKind] = useState<RuleKind>('BLACKLIST')
  const [type, setType] = useState<RuleType>('IP')
  const [value, setValue] = useState('')
  const [scope, setScope] = useState<RuleScope>('ORGANIZATION')
  const [productId, setProductId] = useState<string | null>(null)
  const [licenseKey, setLicenseKey] = useState('')
  const [note, setNote] = useState('')
  const [expiresAt, setExpiresAt] = useState('')
  const [isGenerous, setIsGenerous] = useState(false)
  const create = useChange(
    async () => {
      const scopeId = scope === 'PRODUCT' ? productId : scope === 'LICENSE' ? await licenseWith(licenseKey) : undefined
      const body = {
        kind,
        type,
        value: type === 'HWID' ? value : value.trim(),
        scope,
        ...(scopeId !== undefined && { scopeId }),
        ...(note !== '' && { note }),
        ...(expiresAt !== '' && { expiresAt: new Date(expiresAt).toISOString() }),
        ...(kind === 'EXCLUSION' && { allowSuspendedOrExpired: isGenerous }),
      }
      return call({ method: 'POST', path: '/access-rules', body, waits: true }, accessRule)
    },
    { done: t.created, quiet: true },
  )
  return (
    <FormWindow
      title={t.new}
      action={t.new}
      opened={opened}
      onClose={onClose}
      onSubmit={() => create.mutateAsync(undefined)}
    >
      {(errors) => (
        <>
          <Select
            label={t.kind}
            description={KIND_HINTS[kind]}
            data={choices(text.kinds)}
            value={kind}
            onChange={(chosen) => isKey(text.kinds, chosen) && setKind(chosen)}
            allowDeselect={false}
          />
          <Select
            label={t.type}
            data={choices(text.types)}
            value={type}
            onChange={(chosen) => isKey(text.types, chosen) && setType(chosen)}
            allowDeselect={false}
            error={errors['type']}
          />
          <TextInput
            label={t.value}
            description={HINTS[type]}
            value={value}
            onChange={(event) => setValue(event.currentTarget.value)}
            error={errors['value']}
            required
          />
          {type === 'IP' && <RangeNotes value={value} kind={kind} />}
          <Select
            label={t.scope}
            data={choices(text.scopes)}
            value={scope}
            onChange={(chosen) => isKey(text.scopes, chosen) && setScope(chosen)}
            allowDeselect={false}
          />
          {scope === 'PRODUCT' && <ProductField value={productId} onChange={setProductId} error={errors['scopeId']} />}
          {scope === 'LICENSE' && (
            <TextInput
              label={t.licenseKey}
              value={licenseKey}
              onChange={(event) => setLicenseKey(event.currentTarget.value)}
              error={errors['scopeId']}
              required
            />
          )}
          {kind === 'EXCLUSION' && (
            <Checkbox
              label={t.evenExpired}
              checked={isGenerous}
              onChange={(event) => setIsGenerous(event.currentTarget.checked)}
            />
          )}
          <TextInput
            label={t.expires}
            description={t.expiresHint}
            type="datetime-local"
            value={expiresAt}
            onChange={(event) => setExpiresAt(event.currentTarget.value)}
            error={errors['expiresAt']}
          />
          <Textarea
            label={t.note}
            value={note}
            onChange={(event) => setNote(event.currentTarget.value)}
            error={errors['note']}
          />
        </>
      )}
    </FormWindow>
  )
}
