/**
 * Shows lists as tables with links, sortable columns, selectable rows, and a button that loads more rows. On narrow screens, the stylesheet
 * stacks the cells of a row. Screen readers would then ignore the table, so it has explicit ARIA roles.
 */

import { Button, Center, Skeleton, Stack, UnstyledButton, VisuallyHidden } from '@mantine/core'
import { IconArrowDown, IconArrowsSort, IconArrowUp } from '@tabler/icons-react'
import type { ReactNode } from 'react'

import { text } from '../text.ts'
import { ErrorMessage, TextLink } from './parts.tsx'

export interface Column<Item> {
  title: string
  cell: (item: Item) => ReactNode
  isNumber?: boolean
  /** The name of the field that the API sorts by. */
  sortKey?: string
}

export interface ListState<Item> {
  items: readonly Item[]
  error: Error | null
  isPending: boolean
  hasMore: boolean
  isLoadingMore: boolean
  loadMore: () => void
}

export interface Sorting {
  /** The name of the field that the list is sorted by, or null for the default order. */
  by: string | null
  order: 'asc' | 'desc'
  onSort: (by: string, order: 'asc' | 'desc') => void
}

export interface Selection<Item> {
  ids: ReadonlySet<string>
  onChange: (ids: ReadonlySet<string>) => void
  /** Returns the text that names a row to screen readers. */
  nameOf: (item: Item) => string
}

interface ListTableProps<Item> {
  list: ListState<Item>
  columns: readonly Column<Item>[]
  href?: (item: Item) => string
  empty: ReactNode
  label: string
  sorting?: Sorting
  selection?: Selection<Item> | undefined
  /** The width in pixels below which the table scrolls. */
  minWidth?: number
}

function toggled(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(ids)
  if (!next.delete(id)) next.add(id)
  return next
}

function isSortable<Item>({ sortKey }: Column<Item>, sorting: Sorting | undefined): boolean {
  return sorting !== undefined && sortKey !== undefined
}

/** The title of a column, as a button if the API can sort by the column. */
function Heading<Item>({ column: { title, sortKey }, sorting }: { column: Column<Item>; sorting?: Sorting }) {
  if (title === text.actions) return <VisuallyHidden>{title}</VisuallyHidden>
  if (sorting === undefined || sortKey === undefined) return title
  const isActive = sorting.by === sortKey
  const Icon = isActive ? (sorting.order === 'asc' ? IconArrowUp : IconArrowDown) : IconArrowsSort
  return (
    <UnstyledButton
      fz="sm"
      fw={700}
      className="sort"
      onClick={() => sorting.onSort(sortKey, isActive && sorting.order === 'desc' ? 'asc' : 'desc')}
    >
      {title}
      <Icon size={14} stroke={1.7} aria-hidden="true" opacity={isActive ? 1 : 0.45} />
    </UnstyledButton>
  )
}

function Head<Item extends { id: string }>({ list, columns, sorting, selection }: ListTableProps<Item>) {
  const all = list.items.map(({ id }) => id)
  const chosen = all.filter((id) => selection?.ids.has(id)).length
  return (
    <thead role="rowgroup">
      <tr role="row">
        {selection && (
          <th role="columnheader" className="select-column">
            <input
              type="checkbox"
              className="select"
              aria-label={text.selectAll}
              checked={chosen === all.length}
              ref={(box) => {
                if (box) box.indeterminate = chosen > 0 && chosen < all.length
              }}
              onChange={() => selection.onChange(new Set(chosen === all.length ? [] : all))}
            />
          </th>
        )}
        {columns.map((column) => (
          <th
            key={column.title}
            role="columnheader"
            className={[column.isNumber === true ? 'number' : '', isSortable(column, sorting) ? 'sortable' : ''].join(
              ' ',
            )}
            {...(sorting !== undefined &&
              sorting.by === column.sortKey && {
                'aria-sort': sorting.order === 'asc' ? ('ascending' as const) : ('descending' as const),
              })}
          >
            <Heading column={column} {...(sorting && { sorting })} />
          </th>
        ))}
      </tr>
    </thead>
  )
}

function Rows<Item extends { id: string }>({ list, columns, href, selection }: ListTableProps<Item>) {
  return (
    <tbody role="rowgroup">
      {list.items.map((item) => (
        <tr key={item.id} role="row" {...(selection?.ids.has(item.id) === true && { 'data-selected': true })}>
          {selection && (
            <td role="cell" className="select-cell">
              <input
                type="checkbox"
                className="select"
                aria-label={text.select(selection.nameOf(item))}
                checked={selection.ids.has(item.id)}
                onChange={() => selection.onChange(toggled(selection.ids, item.id))}
              />
            </td>
          )}
          {columns.map(({ title, cell, isNumber }, index) => (
            <td
              key={title}
              role="cell"
              data-label={index === 0 || title === text.actions ? undefined : title}
              {...(isNumber === true && { className: 'number' })}
            >
              {index === 0 && href ? <TextLink href={href(item)}>{cell(item)}</TextLink> : cell(item)}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  )
}

/** A list as a table. `href` makes the first cell of each row a link. `empty` is shown instead of a table without rows. */
export function ListTable<Item extends { id: string }>(props: ListTableProps<Item>) {
  const { list, empty, label, minWidth = 640 } = props
  if (list.error) return <ErrorMessage error={list.error} />
  if (list.isPending)
    return (
      <Stack gap="xs" aria-busy="true" aria-label={text.loading}>
        {Array.from({ length: 5 }, (_, index) => (
          <Skeleton key={index} height={32} />
        ))}
      </Stack>
    )
  if (list.items.length === 0)
    return (
      <Center py="xl">
        <Stack align="center" gap="sm" maw={420} ta="center">
          {empty}
        </Stack>
      </Center>
    )
  return (
    <Stack gap="sm">
      <div className="scrolled" tabIndex={0} role="group" aria-label={label}>
        <table className="list" role="table" aria-label={label} style={{ minWidth }}>
          <Head {...props} />
          <Rows {...props} />
        </table>
      </div>
      {list.hasMore && (
        <Center>
          <Button variant="default" onClick={list.loadMore} loading={list.isLoadingMore}>
            {text.loadMore}
          </Button>
        </Center>
      )}
    </Stack>
  )
}
