"""What an operator does with ncclient, against the server at port argv[1], with the key of argv[2]."""
import sys
import time

from ncclient import manager
from ncclient.operations import RPCError
from ncclient.xml_ import to_ele

NS = "urn:openinof:yang:inof"
OPS = "urn:openinof:yang:inof-operations"
port, key = int(sys.argv[1]), sys.argv[2]


def connect(**who):
    return manager.connect(host="127.0.0.1", port=port, hostkey_verify=False, look_for_keys=False, allow_agent=False, timeout=20, **who)


def zone(name, member, op="merge"):
    return f"""<config xmlns:nc="urn:ietf:params:xml:ns:netconf:base:1.0"><inof xmlns="{NS}"><zones><zone nc:operation="{op}"><name>{name}</name>
      <config><name>{name}</name><member>{member}</member></config></zone></zones></inof></config>"""


def zones(m, source="running"):
    data = m.get_config(source=source).data_ele
    return sorted(e.text for e in data.iterfind(f".//{{{NS}}}zone/{{{NS}}}name"))


def refused(tag, do):
    try:
        do()
    except RPCError as e:
        assert e.tag == tag, (e.tag, tag, e.message)
        return e
    raise AssertionError(f"{tag} is wanted, and it was done")


with connect(username="anna", password="secret") as m:
    for c in (":candidate", ":validate:1.1", ":confirmed-commit:1.1", ":rollback-on-error", ":notification", ":interleave"):
        assert c in m.server_capabilities, c
    m.create_subscription()
    with m.locked("candidate"):
        m.edit_config(target="candidate", config=zone("c", "192.0.2.9"))
        m.validate()
        assert zones(m) == ["a", "b"] and zones(m, "candidate") == ["a", "b", "c"]
        e = refused("data-exists", lambda: m.edit_config(target="candidate", config=zone("a", "192.0.2.9", "create")))
        assert e.path == "/inof:inof/inof:zones/inof:zone[inof:name='a']", e.path
        check = m.dispatch(to_ele(f'<check xmlns="{OPS}"/>'))
        assert "+ zone c" in check.xml, check.xml
        m.commit(confirmed=True, timeout="60")
        assert zones(m) == ["a", "b", "c"]
        m.commit()
    n = m.take_notification(timeout=10)
    assert n is not None and n.notification_ele.find(f"{{{OPS}}}event") is not None, n

# Who goes without confirming leaves nothing behind.
with connect(username="anna", key_filename=key) as m:
    m.edit_config(target="candidate", config=zone("d", "192.0.2.9"))
    m.commit(confirmed=True)
    assert zones(m) == ["a", "b", "c", "d"]
with connect(username="anna", key_filename=key) as m:
    for _ in range(100):
        if zones(m) == ["a", "b", "c"]:
            break
        time.sleep(0.05)
    assert zones(m) == ["a", "b", "c"], zones(m)
    m.edit_config(target="candidate", config=zone("p", "192.0.2.9"))
    m.commit(confirmed=True, persist="ticket")
with connect(username="robot", password="token") as m:
    assert zones(m) == ["a", "b", "c", "p"]
    e = refused("access-denied", lambda: m.commit())
    assert "robot is viewer" in e.message, e.message
    assert "module openinof-inof {" in m.get_schema("openinof-inof").data
    one = m.get(filter=("subtree", f'<inof xmlns="{NS}"><state><id/></state></inof>')).data_ele
    assert [e.text for e in one.iter(f"{{{NS}}}id")] == ["192.0.2.100"], one
with connect(username="anna", password="secret") as m:
    m.commit(persist_id="ticket")
    m.edit_config(target="candidate", config=zone("c", "192.0.2.9", "delete"))
    m.discard_changes()
    assert zones(m, "candidate") == ["a", "b", "c", "p"]
print("done")
