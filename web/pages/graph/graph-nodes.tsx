import { BaseEdge, type Edge, type EdgeProps, Handle, type Node, type NodeProps, Position } from '@xyflow/react'
import type { ReactNode } from 'react'
import { Shape } from '../../parts/state.tsx'
import type { CallFacts, FrameFacts, RouteFacts } from './shapes.ts'

/** One node: its state, its name, one line. Earlier versions stand behind it. */
function CallNode({ data, selected }: NodeProps<Node<CallFacts, 'call'>>): ReactNode {
  return (
    <div
      className={`gnode gnode-${data.state} ${selected ? 'gnode-on' : ''} ${data.versions > 1 ? 'gnode-stack' : ''}`}
    >
      <Handle type="target" position={Position.Top} />
      <Handle type="target" position={Position.Left} id="in" />
      <Shape state={data.state} />
      <span className="gnode-text">
        <b className={`cut ${data.isCode ? 'mono' : ''}`}>{data.name}</b>
        <span className="cut">{data.versions > 1 ? `${data.versions} versions, ${data.line}` : data.line}</span>
      </span>
      <Handle type="source" position={Position.Bottom} />
      <Handle type="source" position={Position.Right} id="out" />
    </div>
  )
}

/** The frame of a conversation or lane. */
function FrameNode({ data }: NodeProps<Node<FrameFacts, 'frame'>>): ReactNode {
  return (
    <div className={`gframe ${data.isFork ? 'gframe-fork' : ''}`}>
      <b className="cut">{data.agent}</b>
      <span className="cut">{data.role}</span>
    </div>
  )
}

/** The line to a child or lane, as the layout drew it. */
function RouteEdge({ id, data, markerEnd }: EdgeProps<Edge<RouteFacts, 'route'>>): ReactNode {
  return <BaseEdge id={id} path={data?.path ?? ''} {...(markerEnd === undefined ? {} : { markerEnd })} />
}

export const EDGE_TYPES = { route: RouteEdge }
export const NODE_TYPES = { call: CallNode, frame: FrameNode }
