import { type AccessRule, type License, machines } from '@keyward/contract'
import { oneLine } from '@keyward/contract/text'
import { Button, Text, VisuallyHidden } from '@mantine/core'
import { IconCheck, IconMinus, IconX } from '@tabler/icons-react'

import { useCall } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { useName } from '../../api/names.ts'
import { machineName } from '../../parts/let-through.tsx'
import { Ago, TextLink } from '../../parts/parts.tsx'
import { text } from '../../text.ts'
import type { Decision, Step } from './steps.ts'

const t = {
  results: {
    passed: 'passed',
    allows: 'lets the check through',
    rejects: 'rejects the check',
    skipped: 'not consulted',
  },
}

function Rule({ rule: { kind, type, value, note } }: { rule: AccessRule }) {
  const customer = useName(type === 'CUSTOMER' ? value : null)
  return (
    <li>
      <Text size="sm" span>
        {text.kinds[kind]}:{' '}
        <TextLink href={`/rules?${new URLSearchParams({ matches: value }).toString()}`}>
          <span className="mono">{customer === '' ? value : customer}</span>
        </TextLink>
        {note !== null && note !== '' && (
          <Text span inherit c="dimmed">
            {' '}
            {note}
          </Text>
        )}
      </Text>
    </li>
  )
}

function StepItem({ step: { title, result, sentence, rules, monitored } }: { step: Step }) {
  const Icon = result === 'rejects' ? IconX : result === 'skipped' ? IconMinus : IconCheck
  return (
    <li className="step" data-result={result}>
      <span className="step-icon">
        <Icon size={14} aria-hidden="true" />
      </span>
      <div className="step-title">
        {title}
        <VisuallyHidden>, {t.results[result]}</VisuallyHidden>
      </div>
      <div className="step-reason">
        <p>{sentence}</p>
        {rules.length > 0 && (
          <ul className="step-rules">
            {rules.map((rule) => (
              <Rule key={rule.id} rule={rule} />
            ))}
          </ul>
        )}
        {monitored.length > 0 && (
          <>
            <p>These rules are only monitored. They decide nothing.</p>
            <ul className="step-rules">
              {monitored.map((rule) => (
                <Rule key={rule.id} rule={rule} />
              ))}
            </ul>
          </>
        )}
      </div>
    </li>
  )
}

/** The machines that hold the slots, each with a button that takes its slot. */
function Holders({ license, holders, onChange }: Remedies & { license: License }) {
  const may = useMay()
  const release = useCall(machines.removeMachine, { done: 'Freed the slot.', onDone: onChange })
  return (
    <ul className="holders">
      {holders.map((one) => (
        <li key={one.id} className="slot-box" data-state="refused">
          <div className="grow">
            <bdi className="name">{machineName(one)}</bdi>
            {one.hostname !== null && <span className="sub mono">{oneLine(one.machineId)}</span>}
          </div>
          <span className="dimmed">
            <Ago at={one.lastSeenAt} />
          </span>
          {may('licenses.write') && (
            <Button
              size="xs"
              variant="default"
              onClick={() => release.mutate({ params: { id: license.id, machineId: one.id } })}
            >
              Free
            </Button>
          )}
        </li>
      ))}
    </ul>
  )
}

interface Remedies {
  holders: Decision['holders']
  onChange: () => void
}

export function StepsList({
  steps,
  license,
  ...remedies
}: Remedies & { steps: readonly Step[]; license: License | null }) {
  return (
    <>
      <ol className="steps" aria-label="The decision step by step">
        {steps.map((one) => (
          <StepItem key={one.title} step={one} />
        ))}
      </ol>
      {license && remedies.holders.length > 0 && <Holders license={license} {...remedies} />}
    </>
  )
}
