import type { AccessRule } from '@keyward/contract'
import { Text, ThemeIcon, VisuallyHidden } from '@mantine/core'
import { IconCheck, IconMinus, IconX } from '@tabler/icons-react'

import { useName } from '../../api/names.ts'
import { TextLink } from '../../parts/parts.tsx'
import { text } from '../../text.ts'
import type { Step } from './steps.ts'

const t = text.why.steps
const COLORS = { passed: 'gray', allows: 'teal', rejects: 'red', skipped: 'gray' } as const

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
      <ThemeIcon
        size={24}
        radius="xl"
        color={COLORS[result]}
        variant={result === 'skipped' || result === 'passed' ? 'light' : 'filled'}
      >
        <Icon size={14} aria-hidden="true" />
      </ThemeIcon>
      <div>
        <Text size="sm" fw={600} {...(result === 'skipped' && { c: 'dimmed' })}>
          {title}
          <VisuallyHidden>, {t.results[result]}</VisuallyHidden>
        </Text>
        <Text size="sm" {...(result === 'skipped' && { c: 'dimmed' })}>
          {sentence}
        </Text>
        {rules.length > 0 && (
          <ul className="step-rules">
            {rules.map((rule) => (
              <Rule key={rule.id} rule={rule} />
            ))}
          </ul>
        )}
        {monitored.length > 0 && (
          <>
            <Text size="sm" c="dimmed">
              {t.monitored}
            </Text>
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

export function StepsList({ steps }: { steps: readonly Step[] }) {
  return (
    <ol className="steps" aria-label={t.label}>
      {steps.map((one) => (
        <StepItem key={one.title} step={one} />
      ))}
    </ol>
  )
}
