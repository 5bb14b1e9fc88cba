/** A list that grows at its end stays there, unless somebody has scrolled away to read. */
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";

const NEAR_PX = 48;

export function useStickToEnd(list: RefObject<HTMLElement | null>, content: RefObject<HTMLElement | null>) {
  const sticks = useRef(true);
  const [isAtEnd, setIsAtEnd] = useState(true);

  const toEnd = () => {
    sticks.current = true;
    setIsAtEnd(true);
    if (list.current !== null) list.current.scrollTop = list.current.scrollHeight;
  };
  const onScroll = () => {
    if (list.current === null) return;
    const { scrollTop, scrollHeight, clientHeight } = list.current;
    sticks.current = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    setIsAtEnd(sticks.current);
  };

  useLayoutEffect(() => {
    if (sticks.current && list.current !== null) list.current.scrollTop = list.current.scrollHeight;
  });
  useEffect(() => {
    // Images and colours come later than the message that they belong to.
    const observer = new ResizeObserver(() => {
      if (sticks.current && list.current !== null) list.current.scrollTop = list.current.scrollHeight;
    });
    if (content.current !== null) observer.observe(content.current);
    if (list.current !== null) observer.observe(list.current);
    return () => observer.disconnect();
  }, [list, content]);

  return { isAtEnd, toEnd, onScroll };
}
