/** The window that changes the mode, the expiry and the note of an access rule, and `allowSuspendedOrExpired` of an exclusion. */

import { type AccessRule, accessRules } from '@keyward/contract'
import { Text } from '@mantine/core'

import { useEdit } from '../../api/edit.ts'
import { expiryAt, timeOf } from '../../parts/expiry-field.tsx'
import { orNull, useFields } from '../../parts/fields.ts'
import { FormWindow } from '../../parts/form.tsx'
import { ModeField, OptionFields } from './rule-fields.tsx'

export function EditRule({ rule, onClose }: { rule: AccessRule; onClose: () => void }) {
  const before = expiryAt(rule.expiresAt)
  const form = useFields({
    mode: rule.mode,
    expiry: before,
    note: rule.note ?? '',
    isGenerous: rule.allowSuspendedOrExpired,
  })
  const saving = useEdit(accessRules.updateAccessRule, rule, { done: 'Changed the rule.' })
  const save = () => {
    const { mode, expiry, note, isGenerous } = form.values
    const isMoved = expiry.preset !== before.preset || expiry.at !== before.at
    return saving.mutateAsync({
      mode,
      note: orNull(note),
      ...(isMoved && { expiresAt: timeOf(expiry) }),
      ...(rule.kind === 'EXCLUSION' && { allowSuspendedOrExpired: isGenerous }),
    })
  }
  return (
    <FormWindow title="Change this rule" action="Save" onClose={onClose} onSubmit={save}>
      {(errors) => (
        <>
          <div>
            <Text fw={600} className="mono">
              {rule.value}
            </Text>
            <Text size="xs" c="dimmed">
              The kind, the value and the scope never change. Delete the rule and create another one instead.
            </Text>
          </div>
          <ModeField value={form.values.mode} onChange={(mode) => form.change({ mode })} />
          <OptionFields kind={rule.kind} form={form} errors={errors} />
        </>
      )}
    </FormWindow>
  )
}
