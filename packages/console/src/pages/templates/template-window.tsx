import { ORDER_DEFAULTS, type OrderOptions, type Template, templates } from '@keyward/contract/management/templates'
import { Checkbox, Select, TextInput } from '@mantine/core'

import { useCall } from '../../api/hooks.ts'
import { EntitlementsField, entitlementsOf, hasProblem, rowsOf } from '../../parts/entitlements-field.tsx'
import { useFields } from '../../parts/fields.ts'
import { FormWindow } from '../../parts/form.tsx'
import { bodyOf, newPolicy, PolicyFields, policyOf } from '../licenses/policy-fields.tsx'

const t = {
  quantities: { licenses: 'Creates several licenses', machines: 'Allows more machines' },
}
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
        label="A quantity in an order"
        data={QUANTITIES.map((one) => ({ value: one, label: t.quantities[one] }))}
        value={value.quantity}
        onChange={(quantity) => quantity !== null && onChange({ ...value, quantity })}
        allowDeselect={false}
      />
      <Checkbox
        label="A refund revokes the licenses"
        checked={value.refund === 'revoke'}
        onChange={(event) => onChange({ ...value, refund: event.currentTarget.checked ? 'revoke' : 'none' })}
      />
      <Checkbox
        label="A dispute suspends the licenses until the payment is confirmed"
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
  const {
    values,
    change,
    text: field,
  } = useFields(() => ({
    name: before?.name ?? '',
    prices: before?.priceIds.join(', ') ?? '',
    orders: before?.orders ?? ORDER_DEFAULTS,
    rows: rowsOf(before?.entitlements ?? {}),
    policy: {
      ...(before === null
        ? { ...newPolicy(), type: 'PERPETUAL' as const }
        : policyOf({ policy: { ...before.policy, expiresAt: null } })),
      startsWithFirstUse: true,
      ...(before?.policy.durationDays === null && { days: '' }),
    },
  }))
  const { name, prices, orders, rows, policy } = values
  const creating = useCall(templates.createTemplate, { done: 'Created the template.', quiet: true })
  const saving = useCall(templates.updateTemplate, { done: 'Saved the template.', quiet: true })
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
      title={before ? 'Change' : 'New template'}
      action={before ? 'Save' : 'New template'}
      onClose={onClose}
      size="lg"
      isInvalid={hasProblem(rows)}
      onSubmit={submit}
    >
      {(errors) => (
        <>
          <TextInput label="Name" {...field('name', errors)} required data-autofocus />
          <PolicyFields
            value={policy}
            onChange={(part) => change({ policy: { ...policy, ...part, startsWithFirstUse: true } })}
            errors={errors}
            isTemplate
          />
          <EntitlementsField rows={rows} onChange={(next) => change({ rows: next })} errors={errors} />
          <TextInput
            label="Prices in shops"
            description="The ids of the prices that sell this template, separated by commas."
            {...field('prices')}
            error={errors['priceIds']}
          />
          <Effects value={orders} onChange={(next) => change({ orders: next })} />
        </>
      )}
    </FormWindow>
  )
}
