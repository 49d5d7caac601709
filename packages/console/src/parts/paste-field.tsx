/** A field for many lines of text, which can come from the clipboard, a chosen file or a dropped file. */

import { Button, FileButton, Group, Stack, Text, Textarea } from '@mantine/core'

export function PasteField({
  label,
  description,
  value,
  onChange,
}: {
  label: string
  description: string
  value: string
  onChange: (content: string) => void
}) {
  const read = (file: File | null | undefined) => void file?.text().then(onChange)
  return (
    <Stack gap="xs">
      <Textarea
        label={label}
        description={description}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          if (event.dataTransfer.files.length === 0) return
          event.preventDefault()
          read(event.dataTransfer.files[0])
        }}
        rows={12}
        spellCheck={false}
        classNames={{ input: 'mono' }}
      />
      <Group gap="xs">
        <FileButton onChange={read} accept=".txt,.csv,.json,.netset,.ipset,text/plain,text/csv,application/json">
          {(props) => (
            <Button {...props} variant="default" size="xs">
              Choose a file
            </Button>
          )}
        </FileButton>
        <Text size="xs" c="dimmed">
          or drop it on the field
        </Text>
      </Group>
    </Stack>
  )
}
