import { checkNewLicense, createLicense, email as emailAddress, licenses } from '@keyward/contract'
import { products } from '@keyward/contract/management/products'
import { type Template, templates } from '@keyward/contract/management/templates'
import { Button, Card, Group, NumberInput, Select, Stack, Text, TextInput, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { type FormEvent, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { z } from 'zod'

import { call } from '../../api/client.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { checkInput, type FieldErrors } from '../../api/input.ts'
import { useMay } from '../../api/me.ts'
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
import { type Fields, useFields } from '../../parts/fields.ts'
import { fieldErrors, useFocusOnError } from '../../parts/form.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable } from '../../parts/parts.tsx'
import { ProductWindow } from '../../parts/product-window.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { useUrlParameters } from '../../parts/url.ts'
import { counted, text } from '../../text.ts'
import { bodyOf, newPolicy, type Policy, policyOf, RareFields, SlotFields, TermFields } from './policy-fields.tsx'

const MAX_MANY = 1_000

/** Shows the keys after more than one license was created. */
function Keys({ keys }: { keys: readonly string[] }) {
  const title = `${counted(keys.length, 'license')} created`
  return (
    <Card withBorder component="section" aria-label={title}>
      <Stack>
        <Title order={2} size="h4">
          {title}
        </Title>
        <Text size="sm" c="dimmed">
          Send these keys to your customer. You also find them in the list of licenses.
        </Text>
        <div className="keys">
          {keys.map((key) => (
            <Copyable key={key} value={key} />
          ))}
        </div>
        <Group>
          <Button component={Link} href="/licenses">
            Open the licenses
          </Button>
        </Group>
      </Stack>
    </Card>
  )
}

/** The input of the form, in which the customer is an e-mail address. */
const { customerId: _, ...shape } = createLicense.shape
const newLicense = z.strictObject({ ...shape, email: emailAddress }).check(checkNewLicense)

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
      label="Template"
      description="Its terms are filled in, and you can change them."
      placeholder="None"
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

/** Returns the terms in words, such as "for Vera Lind, 2 machines, until 24 Nov 2027". */
function termsText({ type, startsWithFirstUse, expiresOn, days, maxMachines }: Policy, email: string): string {
  const day = endOf(expiresOn)
  const machines = maxMachines === '' ? 'any number of machines' : counted(Number(maxMachines), 'machine')
  const end =
    type === 'PERPETUAL'
      ? null
      : startsWithFirstUse
        ? text.daysFromFirstUse(Number(days))
        : Number.isNaN(Date.parse(day))
          ? null
          : `until ${lastDayText(day)}`
  return [email === '' ? null : `for ${email}`, machines, end].filter(Boolean).join(', ')
}

interface Draft {
  productId: string | null
  templateId: string | null
  email: string
  policy: Policy
  rows: EntitlementRow[]
  key: string
  count: number | string
}

interface FieldsProps {
  form: Fields<Draft>
  /** The number of licenses. */
  many: number
  errors: FieldErrors
}

function termsOf({ form: { values, change }, errors }: Pick<FieldsProps, 'form' | 'errors'>) {
  const onChange = (part: Partial<Policy>) => change({ policy: { ...values.policy, ...part } })
  return { value: values.policy, onChange, errors }
}

/** Rarely used fields. They are shown if one of them has an error. */
function MoreOptions({ form, many, errors }: FieldsProps) {
  const { productId, rows, count } = form.values
  const { data } = useRead(products.readProduct, productId === null ? null : { params: { id: productId } })
  return (
    <details className="fieldset more-options" open={errors['key'] !== undefined || undefined}>
      <summary>
        <b>More options</b> <span className="faint">quantity, own key, grace, files, entitlements</span>
      </summary>
      <NumberInput
        label="How many licenses"
        description="All get the same terms, and each its own key."
        value={count}
        onChange={(next) => form.change({ count: next })}
        min={1}
        max={MAX_MANY}
        allowDecimal={false}
      />
      {many === 1 && (
        <TextInput
          label="Your own license key"
          description="Empty: Keyward generates a key."
          {...form.text('key', errors)}
          classNames={{ input: 'mono' }}
          spellCheck={false}
        />
      )}
      <RareFields {...termsOf({ form, errors })} />
      <EntitlementsField
        rows={rows}
        onChange={(next) => form.change({ rows: next })}
        defaults={data?.entitlements ?? {}}
        errors={errors}
      />
    </details>
  )
}

/** States what the button will create, or how many fields the person must correct first. */
function Summary({ form: { values }, many, errors }: FieldsProps) {
  const { productId, policy, email } = values
  const product = useName(productId)
  const wrong = Object.keys(errors).length
  if (wrong > 0)
    return (
      <p role="alert" className="error-text">
        Correct the {wrong === 1 ? 'marked field' : `${wrong} marked fields`}.
      </p>
    )
  return (
    <p>
      <b>
        {counted(many, 'license')}
        {product && ` of ${product}`}: {text.terms[policy.type].toLowerCase()}
      </b>
      <span className="sub">{termsText(policy, email.trim())}</span>
    </p>
  )
}

export default function NewLicense() {
  const may = useMay()
  const given = useUrlParameters()
  const [, navigate] = useLocation()
  const form = useFields<Draft>(() => ({
    productId: given.get('product'),
    templateId: null,
    email: given.get('email') ?? '',
    policy: newPolicy(),
    rows: [],
    key: '',
    count: 1,
  }))
  const { values, change } = form
  const { productId, templateId, policy, rows, key, count } = values
  const email = values.email.trim()
  const [keys, setKeys] = useState<readonly string[]>([])
  const [isAddingProduct, product] = useDisclosure(false)
  const choose = (template: Template | null) => {
    if (template === null) return change({ templateId: null })
    const known = policyOf({ policy: { ...template.policy, expiresAt: null } })
    change({
      templateId: template.id,
      // A template without days leaves the end to each license.
      policy: { ...known, startsWithFirstUse: template.policy.durationDays !== null },
      rows: rowsOf(template.entitlements),
    })
  }
  const many = Number(count) > 1 ? Math.min(Number(count), MAX_MANY) : 1
  const create = useChange(
    () =>
      createLicenses(
        {
          // The message of an absent member states that the field is required.
          productId: productId ?? undefined,
          ...(templateId !== null && { templateId }),
          email: email === '' ? undefined : email,
          policy: bodyOf(policy),
          entitlements: entitlementsOf(rows),
          ...(many === 1 && key !== '' && { key }),
        },
        many,
      ),
    {
      done: many === 1 ? 'Created the license.' : `Created ${counted(many, 'license')}.`,
      quiet: true,
      onDone: (created) => (created.id === undefined ? setKeys(created.keys) : navigate(`/licenses/${created.id}`)),
    },
  )
  const focus = useFocusOnError(create.error)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate(undefined)
  }
  const errors = errorsOf(create.error)
  if (keys.length > 0)
    return (
      <Screen title="New license">
        <Keys keys={keys} />
      </Screen>
    )
  const fields = { form, many, errors }
  const terms = termsOf(fields)
  return (
    <Screen title="New license" back={{ href: '/licenses', label: 'Licenses' }} width="form">
      <form onSubmit={submit} noValidate ref={focus} className="page-form">
        <div className="card">
          <div className="fieldset">
            <div>
              <ProductField
                value={productId}
                onChange={(id) => change({ productId: id, templateId: null })}
                error={errors['productId']}
              />
              {may('products.write') && (
                <button type="button" className="link-button" onClick={product.open}>
                  New product
                </button>
              )}
            </div>
            <TemplateField productId={productId} value={templateId} onChange={choose} error={errors['templateId']} />
            <CustomerField value={values.email} onChange={(next) => change({ email: next })} error={errors['email']} />
          </div>
          <div className="fieldset">
            <TermFields {...terms} />
          </div>
          <div className="fieldset">
            <SlotFields {...terms} />
          </div>
          <MoreOptions {...fields} />
        </div>
        {Object.keys(errors).length === 0 && <ErrorMessage error={create.error} />}
        <div className="form-foot">
          <Summary {...fields} />
          <Button variant="subtle" color="gray" component={Link} href="/licenses">
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending} disabled={hasProblem(rows)}>
            {many === 1 ? 'Create license' : `Create ${counted(many, 'license')}`}
          </Button>
        </div>
      </form>
      {isAddingProduct && (
        <ProductWindow before={null} onClose={product.close} onCreated={({ id }) => change({ productId: id })} />
      )}
    </Screen>
  )
}
