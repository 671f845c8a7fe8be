// `a` and `d` on the card in focus, else on the first one; `.` leads to the next. Nothing is allowed that was not in sight.

import { useKeys } from '../../data/keys.ts'

const OPEN = '[data-ask]'

export function useAskKeys(): void {
  useKeys({
    a: () => press('[data-allow]'),
    d: () => press('[data-deny]'),
    '.': () => bringNext(),
  })
}

function cards(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(OPEN)]
}

function currentCard(): HTMLElement | undefined {
  const here = document.activeElement?.closest<HTMLElement>('[data-nav]')
  return here?.querySelector<HTMLElement>(OPEN) ?? document.activeElement?.closest<HTMLElement>(OPEN) ?? cards()[0]
}

/** The first press brings a card into sight; only the second answers it. */
function press(button: string): void {
  const card = currentCard()
  if (card === undefined || !isInSight(card)) return card === undefined ? undefined : bring(card)
  card.querySelector<HTMLElement>(button)?.click()
}

function isInSight(card: HTMLElement): boolean {
  const { top, bottom } = card.getBoundingClientRect()
  return top >= 0 && bottom <= innerHeight
}

function bring(card: HTMLElement): void {
  card.scrollIntoView({ block: 'center' })
  card.querySelector<HTMLElement>('[data-allow], textarea, button')?.focus({ preventScroll: true })
}

function bringNext(): void {
  const all = cards()
  const now = all.findIndex((card) => card.contains(document.activeElement))
  const next = all[(now + 1) % all.length]
  if (next !== undefined) bring(next)
}
