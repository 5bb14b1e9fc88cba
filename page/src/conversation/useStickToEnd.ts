/** A list that grows at its end stays there, unless somebody has scrolled away to read. */
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";

const NEAR_PX = 48;

export function useStickToEnd(list: RefObject<HTMLElement | null>, content: RefObject<HTMLElement | null>) {
  const sticks = useRef(true);
  const [isAtEnd, setIsAtEnd] = useState(true);

  const scrollIfSticking = () => {
    if (sticks.current && list.current !== null) list.current.scrollTop = list.current.scrollHeight;
  };
  const toEnd = () => {
    sticks.current = true;
    setIsAtEnd(true);
    scrollIfSticking();
  };
  const onScroll = () => {
    if (list.current === null) return;
    const { scrollTop, scrollHeight, clientHeight } = list.current;
    sticks.current = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    setIsAtEnd(sticks.current);
  };

  useLayoutEffect(scrollIfSticking);
  useEffect(() => {
    // Images and the colours of code come later than their message, and make it higher.
    const observer = new ResizeObserver(scrollIfSticking);
    if (content.current !== null) observer.observe(content.current);
    if (list.current !== null) observer.observe(list.current);
    return () => observer.disconnect();
  }, [list, content]);

  return { isAtEnd, toEnd, onScroll };
}
