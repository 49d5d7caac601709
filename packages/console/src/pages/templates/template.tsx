/** One template: its values, and its application to the licenses that have it. */

import { type AppliedTemplate, type Template, templates } from '@keyward/contract/management/templates'
import { Alert, Button, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'

import { useCall, useRead } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { useName } from '../../api/names.ts'
import { useRemembered } from '../../api/recent.ts'
import { Confirm, ConfirmButton } from '../../parts/confirm.tsx'
import { EntitlementList } from '../../parts/entitlement-list.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable, Facts, KeyText, TextLink, Waiting } from '../../parts/parts.tsx'
import { ProgressCard } from '../../parts/progress-card.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { counted, text } from '../../text.ts'
import { slotsOf, termText } from '../licenses/summary.tsx'
import { TemplateWindow } from './template-window.tsx'

const t = {
  kept: (count: number) =>
    `${counted(count, 'license')} ${count === 1 ? 'keeps' : 'keep'} a value of ${count === 1 ? 'its' : 'their'} own:`,
  fields: {
    term: 'terms',
    maxMachines: 'machines',
    maxReleases: 'releases',
    leaseSeconds: 'slots',
    graceDays: 'grace',
    fileDays: 'files',
    entitlements: 'entitlements',
    metadata: 'metadata',
  },
}
const RUNNING_MS = 1_000

const isRunning = (one: Template | undefined) => one?.application?.endedAt === null

function nameOf(field: string): string {
  const names: Readonly<Record<string, string>> = t.fields
  return names[field] ?? field
}

/** The effect of an application, with some of the licenses that keep a value. */
function Effect({ effect: { total, changed, kept, examples } }: { effect: AppliedTemplate }) {
  return (
    <>
      <span>
        {changed === 0
          ? 'No license has a former value of the template, so nothing will change.'
          : `${changed.toLocaleString()} of ${counted(total, 'license')} will change.`}
      </span>
      {kept > 0 && <span> {t.kept(kept)}</span>}
      {examples.kept.map(({ id, key, fields }) => (
        <span key={id} className="sub">
          <KeyText value={key} /> {fields.map(nameOf).join(', ')}
        </span>
      ))}
    </>
  )
}

function Apply({ template: { id, name } }: { template: Template }) {
  const [effect, setEffect] = useState<AppliedTemplate | null>(null)
  const params = { id }
  const preview = useCall(templates.applyTemplate, { onDone: setEffect })
  const apply = useCall(templates.applyTemplate, { done: 'Started to change the licenses.' })
  return (
    <>
      <Button
        onClick={() => preview.mutate({ params, body: { dryRun: true } })}
        loading={preview.isPending}
        variant="default"
      >
        Apply to licenses
      </Button>
      {effect && (
        <Confirm
          label="Apply to licenses"
          title="Apply the template to its licenses?"
          object={name}
          consequence={<Effect effect={effect} />}
          onClose={() => setEffect(null)}
          onConfirm={() => apply.mutateAsync({ params, body: {} })}
        />
      )}
    </>
  )
}

function State({ template: { application, unapplied } }: { template: Template }) {
  if (application !== null && application.endedAt === null)
    return (
      <ProgressCard
        title="Changing licenses"
        done={application.done}
        all={application.total}
        status={`${application.done.toLocaleString()} of ${counted(application.total, 'license')} read`}
      />
    )
  if (unapplied.length > 0)
    return <Alert color="yellow">The licenses of this template do not have its latest values yet.</Alert>
  return application === null ? null : (
    <Text c="dimmed">{`The latest application changed ${counted(application.changed, 'license')}.`}</Text>
  )
}

export default function TemplatePage({ id }: { id: string }) {
  const may = useMay()
  const read = useRead(templates.readTemplate, { params: { id } }, (one) => isRunning(one) && RUNNING_MS)
  const product = useName(read.data?.productId ?? null)
  const [isEditing, editing] = useDisclosure(false)
  const [, navigate] = useLocation()
  const remove = useCall(templates.deleteTemplate, {
    done: 'Deleted the template.',
    onDone: () => navigate(`/products/${read.data?.productId ?? ''}`),
  })
  useRemembered(`/templates/${id}`, 'Template', read.data?.name)
  if (read.error) return <ErrorMessage error={read.error} />
  if (!read.data) return <Waiting />
  const one = read.data
  const { name, productId, entitlements } = one
  const policy = { ...one.policy, expiresAt: null }
  return (
    <Screen
      title={name}
      actions={
        <>
          {may('licenses.read') && (
            <Button variant="default" component={Link} href={`/licenses?templateId=${id}`}>
              Show the licenses
            </Button>
          )}
          {may('licenses.write') && !isRunning(one) && <Apply template={one} />}
          {may('products.write') && (
            <>
              <Button variant="default" onClick={editing.open}>
                Change
              </Button>
              <ConfirmButton
                label="Delete"
                title="Delete this template?"
                consequence="A template that licenses have cannot be deleted."
                onConfirm={() => remove.mutateAsync({ params: { id } })}
              />
            </>
          )}
        </>
      }
    >
      <State template={one} />
      <Facts
        facts={{
          Product: <TextLink href={`/products/${productId}`}>{product}</TextLink>,
          Terms: termText({ policy }),
          'Machines at the same time': policy.maxMachines ?? 'no limit',
          Slots: slotsOf({ policy }),
          'App may free': policy.maxReleases ?? 'no limit',
          'Grace period in days': policy.graceDays,
          Files: text.files(policy),
          Entitlements: <EntitlementList overrides={entitlements} />,
          ...(one.priceIds.length > 0 && { 'Prices in shops': one.priceIds.join(', ') }),
          Id: <Copyable value={id} />,
        }}
      />
      {isEditing && <TemplateWindow productId={productId} before={one} onClose={editing.close} />}
    </Screen>
  )
}
