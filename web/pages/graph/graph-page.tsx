// The graph of a run: nodes and edges, a column for each conversation and lane.

import '@xyflow/react/dist/base.css'
import { Background, Controls, ReactFlow } from '@xyflow/react'
import { type ReactNode, useMemo, useState } from 'react'
import { useRequest } from '../../data/request.ts'
import { useRun } from '../../data/run.ts'
import { RunFrame } from '../../panes/run-frame.tsx'
import { ProblemNote } from '../../parts/states.tsx'
import { count } from '../../words/format.ts'
import '../../styles/graph.css'
import { EDGE_TYPES, NODE_TYPES } from './graph-nodes.tsx'
import { type LoadedGraph, loadGraph } from './load-graph.ts'
import { NodePane } from './node-pane.tsx'
import type { Layout } from './places.ts'
import { drawEdges, drawNodes } from './shapes.ts'
import { useLayout } from './use-layout.ts'

export function GraphPage({ conversationId }: { readonly conversationId: string }): ReactNode {
  const run = useRun(conversationId)
  return (
    <RunFrame run={run} view="graph">
      {({ conversation }) => <Graph conversationId={conversationId} rootId={conversation.rootId} />}
    </RunFrame>
  )
}

/** The newest turn, or all that a page of the graph holds. */
const TURNS = [
  [1, 'Last turn'],
  [20, 'All turns'],
] as const

function Graph({ conversationId, rootId }: { readonly conversationId: string; readonly rootId: string }): ReactNode {
  const [turns, setTurns] = useState<number>(1)
  const [chosen, setChosen] = useState<string | null>(null)
  const key = `tree ${rootId} graph ${conversationId} ${turns}`
  const { value, error } = useRequest(key, () => loadGraph(conversationId, turns))
  const layout = useLayout(value?.columns)
  return (
    <div className="gwrap">
      <section className="canvas" aria-label="Graph">
        {error === null ? null : <ProblemNote error={error} />}
        {value === undefined || layout === null ? null : (
          <Canvas graph={value} layout={layout} chosen={chosen} onChoose={setChosen} />
        )}
        <div className="gtools">
          <fieldset className="seg" aria-label="Turns">
            {TURNS.map(([number, words]) => (
              <button key={number} type="button" aria-pressed={turns === number} onClick={() => setTurns(number)}>
                {words}
              </button>
            ))}
          </fieldset>
          {value === undefined || value.left === 0 ? null : (
            <span className="meta">
              {count(value.left, 'more conversation is', 'more conversations are')} not drawn
            </span>
          )}
        </div>
      </section>
      <NodePane rootId={rootId} nodeId={chosen} />
    </div>
  )
}

interface CanvasProps {
  readonly graph: LoadedGraph
  readonly layout: Layout
  readonly chosen: string | null
  readonly onChoose: (nodeId: string | null) => void
}

function Canvas({ graph: { columns }, layout, chosen, onChoose }: CanvasProps): ReactNode {
  const drawn = useMemo(() => drawNodes(columns, layout), [columns, layout])
  const nodes = useMemo(() => drawn.map((node) => ({ ...node, selected: node.id === chosen })), [drawn, chosen])
  const edges = useMemo(() => drawEdges(columns, layout), [columns, layout])
  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={NODE_TYPES}
      edgeTypes={EDGE_TYPES}
      nodesDraggable={false}
      nodesConnectable={false}
      edgesFocusable={false}
      onlyRenderVisibleElements
      minZoom={0.1}
      defaultViewport={{ x: 24, y: 24, zoom: 0.85 }}
      fitViewOptions={{ maxZoom: 1 }}
      proOptions={{ hideAttribution: true }}
      onNodesChange={(changes) => {
        for (const change of changes) if (change.type === 'select' && change.selected) onChoose(change.id)
      }}
      onPaneClick={() => onChoose(null)}
    >
      <Background gap={20} />
      <Controls showInteractive={false} position="bottom-right" />
    </ReactFlow>
  )
}
