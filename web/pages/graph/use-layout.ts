import { useEffect, useState } from 'react'
import { trustedUrl } from '../../data/worker.ts'
import type { Column } from './columns.ts'
import workerUrl from './layout-worker.ts?worker&url'
import type { ColumnShape, Layout } from './places.ts'

/** A file that was exported has no other file to load: it lays out by itself. */
const isFile = import.meta.env['VITE_FILE'] === '1'

/** The places of all nodes; null until they are known. */
export function useLayout(columns: readonly Column[] | undefined): Layout | null {
  const [layout, setLayout] = useState<Layout | null>(null)
  useEffect(() => {
    if (columns === undefined) return
    let isOver = false
    void layOut(columns.map(shapeOf)).then((made) => {
      if (!isOver) setLayout(made)
    })
    return () => {
      isOver = true
    }
  }, [columns])
  return layout
}

function shapeOf({ id, nodes, edges, from }: Column): ColumnShape {
  return {
    id,
    nodes: nodes.map((node) => node.id),
    edges: edges.map(({ from: a, to: b }) => ({ from: a, to: b })),
    from,
  }
}

/** In a worker; where a browser lets none begin, in the page. */
async function layOut(shapes: readonly ColumnShape[]): Promise<Layout> {
  if (isFile) return layOutHere(shapes)
  return layOutBeside(shapes).catch(() => layOutHere(shapes))
}

async function layOutHere(shapes: readonly ColumnShape[]): Promise<Layout> {
  return (await import('./layout.ts')).layoutColumns(shapes)
}

async function layOutBeside(shapes: readonly ColumnShape[]): Promise<Layout> {
  const worker = new Worker(trustedUrl(workerUrl), { type: 'module' })
  try {
    return await new Promise<Layout>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Layout>) => resolve(data)
      worker.onerror = () => reject(new Error('The graph could not be laid out.'))
      worker.postMessage(shapes)
    })
  } finally {
    worker.terminate()
  }
}
