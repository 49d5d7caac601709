import { type Template, templates } from '@keyward/contract/management/templates'
import { TextInput } from '@mantine/core'
import { useState } from 'react'

import { useCall } from '../../api/hooks.ts'
import { EntitlementsField, entitlementsOf, hasProblem, rowsOf } from '../../parts/entitlements-field.tsx'
import { FormWindow } from '../../parts/form.tsx'
import { text } from '../../text.ts'
import { bodyOf, NEW_POLICY, PolicyFields, policyOf } from '../licenses/policy-fields.tsx'

const t = text.templates

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
  const [rows, setRows] = useState(rowsOf(before?.entitlements ?? {}))
  const [policy, setPolicy] = useState(() => ({
    ...(before === null ? NEW_POLICY : policyOf({ policy: { ...before.policy, expiresAt: null } })),
    startsWithFirstUse: true,
    ...(before?.policy.durationDays === null && { days: '' }),
  }))
  const creating = useCall(templates.createTemplate, { done: t.created, quiet: true })
  const saving = useCall(templates.updateTemplate, { done: t.saved, quiet: true })
  const submit = () => {
    const { expiresAt: _, type = 'PERPETUAL', ...terms } = bodyOf(policy)
    const body = { name, policy: { type, ...terms }, entitlements: entitlementsOf(rows) }
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
        </>
      )}
    </FormWindow>
  )
}
