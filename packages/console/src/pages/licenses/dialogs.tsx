/** The windows of the actions on a license that need fields or a confirmation. */

import { type License, licenses } from '@keyward/contract'
import { products } from '@keyward/contract/management/products'
import { useState } from 'react'
import { useLocation } from 'wouter'

import { useEdit } from '../../api/edit.ts'
import { useCall, useRead } from '../../api/hooks.ts'
import { useName } from '../../api/names.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { EntitlementsField, entitlementsOf, hasProblem, rowsOf } from '../../parts/entitlements-field.tsx'
import { FormWindow } from '../../parts/form.tsx'
import { KeyText } from '../../parts/parts.tsx'
import { text } from '../../text.ts'
import { bodyOf, type Policy, PolicyFields, policyOf, restorePolicy } from './policy-fields.tsx'

const t = text.license
const TYPED_CHARACTERS = 4

export type Opened = 'terms' | 'entitlements' | 'replaceKey' | 'revoke' | 'delete'

/** The window for changing the terms. */
function EditTerms({ license: one, onClose }: { license: License; onClose: () => void }) {
  const [policy, setPolicy] = useState<Policy>(() => policyOf(one))
  const saving = useEdit(licenses.updateLicense, one, {
    done: t.saved,
    undo: (version) => restorePolicy(one, version),
  })
  return (
    <FormWindow
      title={t.editTerms}
      action={text.save}
      opened
      onClose={onClose}
      onSubmit={() => saving.mutateAsync({ policy: bodyOf(policy, one) })}
      size="lg"
    >
      {(errors) => (
        <PolicyFields
          value={policy}
          onChange={(part) => setPolicy({ ...policy, ...part })}
          errors={errors}
          endsAt={one.policy.expiresAt}
        />
      )}
    </FormWindow>
  )
}

/** The window for changing the overrides of the product's entitlements. */
function EditEntitlements({ license: one, onClose }: { license: License; onClose: () => void }) {
  const { data } = useRead(products.readProduct, { params: { id: one.productId } })
  const [rows, setRows] = useState(() => rowsOf(one.entitlements))
  const saving = useEdit(licenses.updateLicense, one, { done: text.entitlements.saved })
  return (
    <FormWindow
      title={text.entitlements.title}
      action={text.save}
      opened
      onClose={onClose}
      onSubmit={() => saving.mutateAsync({ entitlements: entitlementsOf(rows) })}
      size="lg"
      isInvalid={hasProblem(rows)}
    >
      {(errors) => (
        <EntitlementsField rows={rows} onChange={setRows} defaults={data?.entitlements ?? {}} errors={errors} />
      )}
    </FormWindow>
  )
}

/** The window of an action that needs fields or a confirmation. */
export function Dialogs({ license: one, opened, onClose }: { license: License; opened: Opened; onClose: () => void }) {
  const { id, key } = one
  const [, navigate] = useLocation()
  const customer = useName(one.customerId)
  const input = { params: { id } }
  const remove = useCall(licenses.deleteLicense, { done: t.deleted, onDone: () => navigate('/licenses') })
  const replaceKey = useCall(licenses.replaceLicenseKey, { done: t.replaced })
  const revoke = useCall(licenses.revokeLicense, { done: t.revoked })
  const confirm = {
    object: (
      <>
        <KeyText value={key} />
        <span className="sub">{customer}</span>
      </>
    ),
    onClose,
  }
  const typed = key.slice(-TYPED_CHARACTERS)
  switch (opened) {
    case 'terms':
      return <EditTerms license={one} onClose={onClose} />
    case 'entitlements':
      return <EditEntitlements license={one} onClose={onClose} />
    case 'replaceKey':
      return (
        <Confirm
          {...confirm}
          label={t.replaceKey}
          title={t.replaceTitle}
          consequence={t.replaceHint}
          onConfirm={() => replaceKey.mutateAsync(input)}
          isPending={replaceKey.isPending}
        />
      )
    case 'revoke':
      return (
        <Confirm
          {...confirm}
          label={t.revoke}
          title={t.revokeTitle}
          consequence={t.revokeHint}
          typed={typed}
          onConfirm={() => revoke.mutateAsync(input)}
          isPending={revoke.isPending}
        />
      )
    case 'delete':
      return (
        <Confirm
          {...confirm}
          label={t.delete}
          title={t.deleteTitle}
          consequence={t.deleteHint}
          typed={typed}
          onConfirm={() => remove.mutateAsync(input)}
          isPending={remove.isPending}
        />
      )
    default:
      return opened satisfies never
  }
}
