import { checkNewLicense, createLicense, email as emailAddress, licenses } from '@keyward/contract'
import { products } from '@keyward/contract/management/products'
import type { Me } from '@keyward/contract/management/sign-in'
import { type Template, templates } from '@keyward/contract/management/templates'
import { Button, Card, Group, NumberInput, Select, Stack, Text, TextInput, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { type FormEvent, type ReactNode, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { z } from 'zod'

import { call } from '../../api/client.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { checkInput, type FieldErrors } from '../../api/input.ts'
import { useName } from '../../api/names.ts'
import { CustomerField, customerWith, ProductField } from '../../parts/choose.tsx'
import { endOf, lastDayText } from '../../parts/days.ts'
import {
  type EntitlementRow,
  EntitlementsField,
  entitlementsOf,
  hasProblem,
  rowsOf,
} from '../../parts/entitlements-field.tsx'
import { fieldErrors, useFocusOnError } from '../../parts/form.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable } from '../../parts/parts.tsx'
import { ProductWindow } from '../../parts/product-window.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { useUrlParameters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { bodyOf, newPolicy, type Policy, policyOf, RareFields, SlotFields, TermFields } from './policy-fields.tsx'

const t = text.licenses
const MAX_MANY = 1_000

/** Shows the keys after more than one license was created. */
function Keys({ keys }: { keys: readonly string[] }) {
  return (
    <Card withBorder component="section" aria-label={t.keysTitle(keys.length)}>
      <Stack>
        <Title order={2} size="h4">
          {t.keysTitle(keys.length)}
        </Title>
        <Text size="sm" c="dimmed">
          {t.keysHint}
        </Text>
        <div className="keys">
          {keys.map((key) => (
            <Copyable key={key} value={key} />
          ))}
        </div>
        <Group>
          <Button component={Link} href="/licenses">
            {t.toLicenses}
          </Button>
        </Group>
      </Stack>
    </Card>
  )
}

/** The input of the form, in which the customer is an e-mail address. */
const { customerId: _, ...fields } = createLicense.shape
const newLicense = z.strictObject({ ...fields, email: emailAddress }).check(checkNewLicense)

/**
 * Creates `count` licenses and returns their keys. For a single license, also returns the id. All fields are checked first, because a
 * rejected license would leave a new customer behind.
 */
async function createLicenses(draft: unknown, count: number): Promise<{ keys: string[]; id?: string }> {
  checkInput(newLicense, draft)
  const { email, ...terms } = draft
  const body = { ...terms, customerId: await customerWith(email) }
  if (count === 1) {
    const { key, id } = await call(licenses.createLicense, { body })
    return { keys: [key], id }
  }
  const created = await call(licenses.importLicenses, {
    body: { licenses: Array.from({ length: count }, () => body) },
  })
  return { keys: created.licenses.map(({ key }) => key) }
}

/** A field for selecting one of the templates of a product. It is absent if the product has none. */
function TemplateField({
  productId,
  value,
  onChange,
  error,
}: {
  productId: string | null
  value: string | null
  onChange: (template: Template | null) => void
  error: string | undefined
}) {
  const { data } = useRead(templates.listTemplates, productId === null ? null : { params: { id: productId } })
  if (data === undefined || data.data.length === 0) return null
  return (
    <Select
      label={text.templates.one}
      description={text.templates.choose}
      placeholder={text.templates.none}
      data={data.data.map(({ id, name }) => ({ value: id, label: name }))}
      value={value}
      onChange={(id) => onChange(data.data.find((one) => one.id === id) ?? null)}
      error={error}
      clearable
    />
  )
}

/** Returns the errors by field. All new licenses have the same fields, so the position of the license is removed. */
function errorsOf(error: Error | null): FieldErrors {
  const all = Object.entries(fieldErrors(error))
  return Object.fromEntries(all.map(([pointer, detail]) => [pointer.replace(/^licenses\/\d+\//, ''), detail]))
}

/** The number of licenses, and the key of a single license. */
function More({
  many,
  count,
  onCount,
  ownKey,
  onKey,
  error,
}: {
  many: number
  count: number | string
  onCount: (count: number | string) => void
  ownKey: string
  onKey: (key: string) => void
  error: string | undefined
}) {
  return (
    <>
      <NumberInput
        label={t.howMany}
        description={t.howManyHint}
        value={count}
        onChange={onCount}
        min={1}
        max={MAX_MANY}
        allowDecimal={false}
      />
      {many === 1 && (
        <TextInput
          label={t.ownKey}
          description={t.ownKeyHint}
          value={ownKey}
          onChange={(event) => onKey(event.currentTarget.value)}
          error={error}
          classNames={{ input: 'mono' }}
          spellCheck={false}
        />
      )}
    </>
  )
}

/** Returns the terms in words, such as "for Vera Lind, 2 machines, until 24 Nov 2027". */
function termsText({ type, startsWithFirstUse, expiresOn, days, maxMachines }: Policy, email: string): string {
  const day = endOf(expiresOn)
  const end =
    type === 'PERPETUAL'
      ? null
      : startsWithFirstUse
        ? t.daysFromFirstUse(Number(days))
        : Number.isNaN(Date.parse(day))
          ? null
          : t.untilDay(lastDayText(day))
  return [email === '' ? null : t.forCustomer(email), t.forMachines(maxMachines), end].filter(Boolean).join(', ')
}

/** Rarely used fields. They are shown if one of them has an error. */
function MoreOptions({ hasError, children }: { hasError: boolean; children: ReactNode }) {
  return (
    <details className="fieldset more-options" open={hasError || undefined}>
      <summary>
        <b>{t.more}</b> <span className="faint">{t.moreHint}</span>
      </summary>
      {children}
    </details>
  )
}

/** States what the button will create, or how many fields the person must correct first. */
function Summary({ wrong, children }: { wrong: number; children: ReactNode }) {
  if (wrong === 0) return <p>{children}</p>
  return (
    <p role="alert" className="error-text">
      {text.correct(wrong)}
    </p>
  )
}

export default function NewLicense({ me }: { me: Me }) {
  const given = useUrlParameters()
  const [, navigate] = useLocation()
  const [productId, setProductId] = useState<string | null>(given.get('product'))
  const [templateId, setTemplateId] = useState<string | null>(null)
  const [email, setEmail] = useState(given.get('email') ?? '')
  const [policy, setPolicy] = useState(newPolicy)
  const [rows, setRows] = useState<EntitlementRow[]>([])
  const [key, setKey] = useState('')
  const [count, setCount] = useState<number | string>(1)
  const [keys, setKeys] = useState<readonly string[]>([])
  const defaults = useRead(products.readProduct, productId === null ? null : { params: { id: productId } })
  const productName = useName(productId)
  const [isAddingProduct, product] = useDisclosure(false)
  const choose = (template: Template | null) => {
    setTemplateId(template?.id ?? null)
    if (template === null) return
    const known = policyOf({ policy: { ...template.policy, expiresAt: null } })
    // A template without days leaves the end to each license.
    setPolicy({ ...known, startsWithFirstUse: template.policy.durationDays !== null })
    setRows(rowsOf(template.entitlements))
  }
  const many = Number(count) > 1 ? Math.min(Number(count), MAX_MANY) : 1
  const create = useChange(
    () =>
      createLicenses(
        {
          // The message of an absent member states that the field is required.
          productId: productId ?? undefined,
          ...(templateId !== null && { templateId }),
          email: email.trim() === '' ? undefined : email.trim(),
          policy: bodyOf(policy),
          entitlements: entitlementsOf(rows),
          ...(many === 1 && key !== '' && { key }),
        },
        many,
      ),
    {
      done: many === 1 ? t.created : t.createdMany(many),
      quiet: true,
      onDone: (created) => (created.id === undefined ? setKeys(created.keys) : navigate(`/licenses/${created.id}`)),
    },
  )
  const form = useFocusOnError(create.error)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate(undefined)
  }
  const errors = errorsOf(create.error)
  if (keys.length > 0)
    return (
      <Screen title={t.new}>
        <Keys keys={keys} />
      </Screen>
    )
  const wrong = Object.keys(errors).length
  const terms = { value: policy, onChange: (part: Partial<Policy>) => setPolicy({ ...policy, ...part }), errors }
  return (
    <Screen title={t.new} back={{ href: '/licenses', label: t.title }} width="form">
      <form onSubmit={submit} noValidate ref={form} className="page-form">
        <div className="card">
          <div className="fieldset">
            <div>
              <ProductField
                value={productId}
                onChange={(id) => {
                  setProductId(id)
                  setTemplateId(null)
                }}
                error={errors['productId']}
              />
              {me.permissions.includes('products.write') && (
                <button type="button" className="link-button" onClick={product.open}>
                  {text.products.new}
                </button>
              )}
            </div>
            <TemplateField productId={productId} value={templateId} onChange={choose} error={errors['templateId']} />
            <CustomerField value={email} onChange={setEmail} error={errors['email']} />
          </div>
          <div className="fieldset">
            <TermFields {...terms} />
          </div>
          <div className="fieldset">
            <SlotFields {...terms} />
          </div>
          <MoreOptions hasError={errors['key'] !== undefined}>
            <More many={many} count={count} onCount={setCount} ownKey={key} onKey={setKey} error={errors['key']} />
            <RareFields {...terms} />
            <EntitlementsField
              rows={rows}
              onChange={setRows}
              defaults={defaults.data?.entitlements ?? {}}
              errors={errors}
            />
          </MoreOptions>
        </div>
        {wrong === 0 && <ErrorMessage error={create.error} />}
        <div className="form-foot">
          <Summary wrong={wrong}>
            <b>{t.summary(many, t.types[policy.type], productName)}</b>
            <span className="sub">{termsText(policy, email.trim())}</span>
          </Summary>
          <Button variant="subtle" color="gray" component={Link} href="/licenses">
            {text.cancel}
          </Button>
          <Button type="submit" loading={create.isPending} disabled={hasProblem(rows)}>
            {many === 1 ? t.create : t.createMany(many)}
          </Button>
        </div>
      </form>
      {isAddingProduct && (
        <ProductWindow before={null} onClose={product.close} onCreated={({ id }) => setProductId(id)} />
      )}
    </Screen>
  )
}
