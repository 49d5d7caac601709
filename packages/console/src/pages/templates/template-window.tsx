import { ORDER_DEFAULTS, type OrderOptions, type Template, templates } from '@keyward/contract/management/templates'
import { Checkbox, Select, TextInput } from '@mantine/core'
import { useState } from 'react'

import { useCall } from '../../api/hooks.ts'
import { EntitlementsField, entitlementsOf, hasProblem, rowsOf } from '../../parts/entitlements-field.tsx'
import { FormWindow } from '../../parts/form.tsx'
import { text } from '../../text.ts'
import { bodyOf, newPolicy, PolicyFields, policyOf } from '../licenses/policy-fields.tsx'

const t = text.templates
const QUANTITIES = ['licenses', 'machines'] as const

const idsOf = (prices: string): string[] =>
  prices
    .split(',')
    .map((price) => price.trim())
    .filter((price) => price !== '')

/** The effects of orders. */
function Effects({ value, onChange }: { value: OrderOptions; onChange: (value: OrderOptions) => void }) {
  return (
    <>
      <Select
        label={t.quantity}
        data={QUANTITIES.map((one) => ({ value: one, label: t.quantities[one] }))}
        value={value.quantity}
        onChange={(quantity) => quantity !== null && onChange({ ...value, quantity })}
        allowDeselect={false}
      />
      <Checkbox
        label={t.revokes}
        checked={value.refund === 'revoke'}
        onChange={(event) => onChange({ ...value, refund: event.currentTarget.checked ? 'revoke' : 'none' })}
      />
      <Checkbox
        label={t.suspends}
        checked={value.dispute === 'suspend'}
        onChange={(event) => onChange({ ...value, dispute: event.currentTarget.checked ? 'suspend' : 'none' })}
      />
    </>
  )
}

/** Creates a template of a product, or changes one. */
export function TemplateWindow({
  productId,
  before,
  onClose,
}: {
  productId: string
  before: Template | null
  onClose: () => void
}) {
  const [name, setName] = useState(before?.name ?? '')
  const [prices, setPrices] = useState(before?.priceIds.join(', ') ?? '')
  const [orders, setOrders] = useState<OrderOptions>(before?.orders ?? ORDER_DEFAULTS)
  const [rows, setRows] = useState(rowsOf(before?.entitlements ?? {}))
  const [policy, setPolicy] = useState(() => ({
    ...(before === null
      ? { ...newPolicy(), type: 'PERPETUAL' as const }
      : policyOf({ policy: { ...before.policy, expiresAt: null } })),
    startsWithFirstUse: true,
    ...(before?.policy.durationDays === null && { days: '' }),
  }))
  const creating = useCall(templates.createTemplate, { done: t.created, quiet: true })
  const saving = useCall(templates.updateTemplate, { done: t.saved, quiet: true })
  const submit = () => {
    const { expiresAt: _, type = 'PERPETUAL', ...terms } = bodyOf(policy)
    const body = {
      name,
      policy: { type, ...terms },
      entitlements: entitlementsOf(rows),
      priceIds: idsOf(prices),
      orders,
    }
    return before === null
      ? creating.mutateAsync({ params: { id: productId }, body })
      : saving.mutateAsync({ params: { id: before.id }, body })
  }
  return (
    <FormWindow
      title={before ? t.edit : t.new}
      action={before ? text.save : t.new}
      opened
      onClose={onClose}
      size="lg"
      isInvalid={hasProblem(rows)}
      onSubmit={submit}
    >
      {(errors) => (
        <>
          <TextInput
            label={t.nameOf}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={errors['name']}
            required
            data-autofocus
          />
          <PolicyFields
            value={policy}
            onChange={(part) => setPolicy({ ...policy, ...part, startsWithFirstUse: true })}
            errors={errors}
            isTemplate
          />
          <EntitlementsField rows={rows} onChange={setRows} errors={errors} />
          <TextInput
            label={t.prices}
            description={t.pricesHint}
            value={prices}
            onChange={(event) => setPrices(event.currentTarget.value)}
            error={errors['priceIds']}
          />
          <Effects value={orders} onChange={setOrders} />
        </>
      )}
    </FormWindow>
  )
}
