/** A form field for selecting one of a few values. A card for each value shows its name and an explanation. */

import { Radio, SimpleGrid, Text } from '@mantine/core'

export function ChoiceCards<Value extends string>({
  label,
  values,
  names,
  hints,
  value,
  onChange,
}: {
  label: string
  values: readonly Value[]
  names: Readonly<Record<Value, string>>
  hints: Readonly<Record<Value, string>>
  value: Value
  onChange: (value: Value) => void
}) {
  const select = (name: string) => {
    const selected = values.find((one) => one === name)
    if (selected !== undefined) onChange(selected)
  }
  return (
    <Radio.Group label={label} value={value} onChange={select}>
      <SimpleGrid cols={{ base: 1, sm: 3 }} mt={6} spacing="xs">
        {values.map((one) => (
          <Radio.Card key={one} value={one} p="sm" className="choice" aria-label={names[one]}>
            <Text size="sm" fw={600}>
              {names[one]}
            </Text>
            <Text size="xs" c="dimmed">
              {hints[one]}
            </Text>
          </Radio.Card>
        ))}
      </SimpleGrid>
    </Radio.Group>
  )
}
