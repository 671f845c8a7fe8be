// Which card a person is at: the pointer is over it, or the focus is in it. Such a card does not leave under a hand that is about
// to press, and a field does not leave while somebody types in it.

import { useRef } from 'react'
import { Cell, useCell } from './cell.ts'

/** The names of the cards (`data-stay`) under the pointer and around the focus. */
interface Present {
  readonly pointer: string | null
  readonly focus: string | null
}

const present = new Cell<Present>({ pointer: null, focus: null })

export function listenToPresence(): void {
  const note = (more: Partial<Present>) => {
    const now = present.get()
    const next = { ...now, ...more }
    if (next.pointer !== now.pointer || next.focus !== now.focus) present.set(next)
  }
  document.addEventListener('pointerover', ({ target }) => note({ pointer: cardOf(target) }))
  document.addEventListener('pointerout', ({ relatedTarget }) => {
    if (relatedTarget === null) note({ pointer: null })
  })
  // A button that was pressed with the pointer has the focus, too: there the pointer tells when somebody leaves.
  document.addEventListener('focusin', ({ target }) => note({ focus: isByKeys(target) ? cardOf(target) : null }))
  document.addEventListener('keydown', ({ target }) => note({ focus: cardOf(target) }))
  document.addEventListener('focusout', ({ relatedTarget }) => {
    // A window that somebody leaves for another keeps its focus.
    if (relatedTarget === null && document.hasFocus()) note({ focus: null })
  })
}

function isByKeys(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches(':focus-visible')
}

function cardOf(target: EventTarget | null): string | null {
  if (!(target instanceof Element)) return null
  return target.closest<HTMLElement>('[data-stay]')?.dataset['stay'] ?? null
}

/** Items in order, those that are gone and stay among them. */
export interface Staying<Item> {
  readonly items: readonly Item[]
  readonly isGone: (item: Item) => boolean
}

/** The items that are there, and where they stood those that are gone while a person is at them. `keyOf` gives their `data-stay`. */
export function useStaying<Item>(items: readonly Item[], keyOf: (item: Item) => string): Staying<Item> {
  const { pointer, focus } = useCell(present)
  const before = useRef<readonly Item[]>([])
  const keys = new Set(items.map(keyOf))
  const merged = [...items]
  for (const [at, item] of before.current.entries()) {
    const key = keyOf(item)
    if (!keys.has(key) && (key === pointer || key === focus)) merged.splice(at, 0, item)
  }
  before.current = merged
  return { items: merged, isGone: (item) => !keys.has(keyOf(item)) }
}
