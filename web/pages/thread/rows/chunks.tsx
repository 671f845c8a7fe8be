// A long list of which only what is near the window is on the page.
//
// Stays true:
// - A part that leaves the page leaves a place of its height, so nothing jumps.
// - One part is drawn per frame, the nearest first: a press is answered before the next part.

import { memo, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { useCell } from '../../../window/cell.ts'
import { useThread } from '../state/thread-state.ts'
import { drawLater, forgetDrawing } from './draw-later.ts'

interface ChunksProps<Item> {
  readonly items: readonly Item[]
  /** How many items come and go together. */
  readonly size: number
  /** The height of an item that was never drawn. */
  readonly guess: number
  readonly render: (item: Item) => ReactNode
  /** True for an item that must be drawn. */
  readonly isWanted: (item: Item, wanted: ReadonlySet<string>) => boolean
  /** Draws the last part first: where the page begins at the end. */
  readonly fromEnd?: boolean
}

export function Chunks<Item>({ items, size, guess, render, isWanted, fromEnd = false }: ChunksProps<Item>): ReactNode {
  const { thread } = useThread()
  const wanted = useCell(thread.wanted)
  if (items.length <= size * 2) return items.map(render)
  const parts = Array.from({ length: Math.ceil(items.length / size) }, (_, at) =>
    items.slice(at * size, (at + 1) * size),
  )
  return parts.map((part, at) => (
    <Chunk
      key={`${at}`}
      items={part}
      guess={guess * part.length}
      render={render as (item: unknown) => ReactNode}
      isFirst={fromEnd ? at === parts.length - 1 : at === 0}
      isForced={wanted.size > 0 && part.some((item) => isWanted(item, wanted))}
    />
  ))
}

interface ChunkProps {
  readonly items: readonly unknown[]
  readonly guess: number
  readonly render: (item: unknown) => ReactNode
  readonly isFirst: boolean
  readonly isForced: boolean
}

/** How far from the window parts are drawn. */
const MARGIN = '900px 0px'

const Chunk = memo(function Chunk({ items, guess, render, isFirst, isForced }: ChunkProps): ReactNode {
  const { scroller } = useThread()
  const ref = useRef<HTMLLIElement>(null)
  const height = useRef(guess)
  const [isNear, setNear] = useState(isFirst)
  const isDrawn = isNear || isForced
  useEffect(() => {
    const element = ref.current
    if (element === null || scroller === null) return
    const isScrolled = getComputedStyle(scroller).overflowY !== 'visible'
    const observer = new IntersectionObserver((seen) => drawLater(setNear, seen.at(-1)), {
      root: isScrolled ? scroller : null,
      rootMargin: MARGIN,
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
      forgetDrawing(setNear)
    }
  }, [scroller])
  useLayoutEffect(() => {
    const element = ref.current
    if (element === null || !isDrawn) return
    const observer = new ResizeObserver(() => {
      if (element.offsetHeight > 0) height.current = element.offsetHeight
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [isDrawn])
  return (
    <li className="chunk" ref={ref} style={isDrawn ? undefined : { height: height.current }}>
      {isDrawn ? <ol>{items.map(render)}</ol> : null}
    </li>
  )
}, isSameChunk)

function isSameChunk(a: ChunkProps, b: ChunkProps): boolean {
  return (
    a.isFirst === b.isFirst &&
    a.isForced === b.isForced &&
    a.render === b.render &&
    a.items.length === b.items.length &&
    a.items.every((item, at) => item === b.items[at])
  )
}
